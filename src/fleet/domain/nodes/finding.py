"""List the machines that may run model servers, and name the servers that were found."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from fleet.base.loose_json import mapping, string
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

PORTS = (11434, 8000, 1234, 8080, 30000)  # Ollama, vLLM, LM Studio, llama.cpp, SGLang
MOST_ADDRESSES = 1024
SHARED = ipaddress.ip_network("100.64.0.0/10")  # Tailscale's addresses


class ProbedAddress(NamedTuple):
    """A machine to probe. `port`: of its server; 0: unknown, so the usual ports are tried."""

    name: str
    address: str
    port: int = 0


class FoundNode(NamedTuple):
    """A model server that answered, and a name for it under `nodes`."""

    name: str
    endpoint: str
    kind: str
    by: str  # how it was found: tailscale, mdns, or the network


def machines_of_tailscale(status: object) -> list[ProbedAddress]:
    """This machine and the peers that are online, read from `tailscale status --json`."""
    top = mapping(status)
    peers = [mapping(peer) for peer in mapping(top.get("Peer")).values()]
    rows = [mapping(top.get("Self")), *(peer for peer in peers if peer.get("Online") is True)]
    machines = []
    for row in rows:
        addresses = row.get("TailscaleIPs")
        listed = [a for a in addresses if isinstance(a, str)] if isinstance(addresses, list) else []
        usable = [a for a in listed if re.fullmatch(r"[0-9.]+", a)]
        if usable:
            name = string(row.get("DNSName")).split(".")[0] or string(row.get("HostName"))
            machines.append(ProbedAddress(name, usable[0]))
    return machines


def machines_of_network(text: str) -> list[ProbedAddress]:
    """The addresses of a network. Raise `BadInput` unless it is private and not too large."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise BadInput(
            f"'{text[:60]}' is not a network.",
            fix="Write tailscale, mdns, or a network such as 192.168.1.0/24.",
        ) from None
    near = network.is_private or (network.version == SHARED.version and network.subnet_of(SHARED))  # type: ignore[arg-type]
    if not near:
        raise BadInput(f"{network} is not a private network.", fix="Scan a network of your own.")
    if network.num_addresses > MOST_ADDRESSES:
        raise BadInput(
            f"{network} has {network.num_addresses} addresses; at most {MOST_ADDRESSES} are scanned.",
            fix="Name a smaller network, such as 192.168.1.0/24.",
        )
    return [ProbedAddress("", str(address)) for address in network.hosts()]


def node_name(machine: ProbedAddress, port: int, taken: Collection[str]) -> str:
    """A valid name for a node in fleet.yaml that is not in `taken`."""
    plain = machine.name or f"node-{machine.address}"
    base = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-").lower() or "node"
    names: Iterable[str] = (base, f"{base}-{port}", *(f"{base}-{port}-{n}" for n in range(2, 1000)))
    return next(name for name in names if name not in taken)
