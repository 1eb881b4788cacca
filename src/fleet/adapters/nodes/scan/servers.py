"""Find machines with a model server: try connections, then ask those that accept one."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fleet.adapters.nodes.survey import detect
from fleet.domain.errors import Unavailable
from fleet.domain.nodes.finding import PORTS, FoundNode, ProbedAddress, node_name

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

AT_ONCE = 32
RATE = 200  # connections a second: what a home router carries without a complaint
CONNECT = 0.5  # seconds; a machine of the same network answers in a few milliseconds
QUESTION = 2.0


class _Throttle:
    """Lets at most `rate` callers a second pass."""

    def __init__(self, rate: int) -> None:
        self._lock, self._gap, self._next = threading.Lock(), 1 / rate, 0.0

    def wait(self) -> None:
        with self._lock:
            now = time.monotonic()
            self._next = max(now, self._next + self._gap)
            pause = self._next - now
        time.sleep(pause)


def find_servers(
    machines: Sequence[tuple[str, ProbedAddress]],
    ports: Sequence[int],
    taken: Collection[str],
    known: Collection[str],
) -> list[FoundNode]:
    """Return the servers in the order of `machines`, whose pairs begin with how one was found.

    No key is sent. `taken`: names of declared nodes; `known`: their addresses.
    """
    pace = _Throttle(RATE)
    doors = [
        (by, machine, port)
        for by, machine in machines
        for port in ([machine.port] if machine.port else ports or PORTS)
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        kinds = list(pool.map(lambda door: _kind(door[1].address, door[2], pace), doors))
    names, endpoints, servers = set(taken), set(known), []
    for (by, machine, port), kind in zip(doors, kinds, strict=True):
        endpoint = _url(machine.address, port)
        if kind and endpoint not in endpoints:
            name = node_name(machine, port, names)
            names.add(name)
            endpoints.add(endpoint)
            servers.append(FoundNode(name, endpoint, kind, by))
    return servers


def _url(address: str, port: int) -> str:
    return f"http://{f'[{address}]' if ':' in address else address}:{port}"


def _kind(address: str, port: int, pace: _Throttle) -> str:
    """Return the kind of the server there; empty when there is none."""
    pace.wait()
    try:
        socket.create_connection((address, port), timeout=CONNECT).close()
        return detect(_url(address, port), within=QUESTION)
    except (OSError, Unavailable):
        return ""
