"""Look for model servers that the settings do not name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.errors import Unavailable
from fleet.domain.nodes.finding import machines_of_network

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.app.app import App
    from fleet.domain.nodes.finding import FoundNode, ProbedAddress

ANYWHERE = "anywhere"  # every source that lists machines without scanning a network


def scan(app: App, where: str, ports: Sequence[int]) -> tuple[list[FoundNode], list[str]]:
    """Return the servers, and why some ways to list machines did not work.

    Raise `BadInput` for a network that is not to be scanned, `Unavailable` when no way is possible.
    """
    from fleet.adapters.nodes.scan.servers import find_servers

    nodes = app.loaded.fleet.nodes
    machines, notes = _machines(app, where)
    known = {node.endpoint.removesuffix("/v1") for node in nodes.values()}
    return find_servers(machines, ports, nodes, known), notes


def _machines(app: App, where: str) -> tuple[list[tuple[str, ProbedAddress]], list[str]]:
    from fleet.adapters.nodes.scan.mdns import mdns_machines
    from fleet.adapters.nodes.scan.tailscale import tailscale_machines

    ways: dict[str, Callable[[], list[ProbedAddress]]] = {
        "tailscale": lambda: tailscale_machines(app.env),
        "mdns": lambda: mdns_machines(),  # noqa: PLW0108  # it has parameters
    }
    if where in ways:
        return [(where, machine) for machine in ways[where]()], []
    if where != ANYWHERE:
        return [("network", machine) for machine in machines_of_network(where)], []
    machines: list[tuple[str, ProbedAddress]] = []
    troubles: list[Unavailable] = []
    for name, way in ways.items():
        try:
            machines += [(name, machine) for machine in way()]
        except Unavailable as error:
            troubles.append(error)
    if len(troubles) == len(ways):
        raise troubles[-1]
    return machines, [f"{error.message} {error.fix}" for error in troubles]
