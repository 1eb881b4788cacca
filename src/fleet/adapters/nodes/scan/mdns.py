"""Servers that announce themselves on the local network (mDNS, Bonjour, Avahi)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from fleet.domain.errors import Unavailable
from fleet.domain.nodes.finding import ProbedAddress

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = ("_ollama._tcp.local.", "_llm._tcp.local.", "_openai._tcp.local.", "_http._tcp.local.")
LISTEN = 2.0  # seconds: an announcement is answered within one


def mdns_machines(interfaces: Sequence[str] = (), *, within: float = LISTEN) -> list[ProbedAddress]:
    """The machines that announce one of these services. `interfaces`: addresses to listen on; none: all.

    Raise `Unavailable` when the package for it is not installed, or there is no network.
    """
    try:
        import zeroconf  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unavailable(
            "The package zeroconf, which listens for servers, is not installed.",
            fix="Install it: pip install 'agent-fleet[discover]'",
            code="no_zeroconf",
        ) from None
    every: Any = list(interfaces) or zeroconf.InterfaceChoice.All
    try:
        listening = zeroconf.Zeroconf(interfaces=every)
    except OSError as error:
        raise Unavailable(
            f"Cannot listen on the network: {error.strerror}.",
            fix="Connect to a network, or name one: fleet discover --scan 192.168.1.0/24",
            code="no_mdns",
        ) from None
    with listening:
        return _heard(zeroconf, listening, within)


def _heard(zeroconf: Any, listening: Any, within: float) -> list[ProbedAddress]:
    names: dict[tuple[str, str], None] = {}

    def note(zeroconf: Any, service_type: str, name: str, state_change: Any) -> None:
        del zeroconf, state_change
        names[service_type, name] = None

    browser = zeroconf.ServiceBrowser(listening, list(KINDS), handlers=[note])
    threading.Event().wait(within)
    browser.cancel()
    machines: dict[tuple[str, int], ProbedAddress] = {}
    for service_type, name in list(names):
        info = zeroconf.ServiceInfo(service_type, name)
        if info.load_from_cache(listening) or info.request(listening, int(within * 1000)):
            for address in info.parsed_addresses(zeroconf.IPVersion.V4Only):
                host = name.removesuffix(f".{service_type}")
                machines.setdefault(
                    (address, info.port or 0), ProbedAddress(host, address, info.port or 0)
                )
    return list(machines.values())
