"""The machines that serve models."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.fleet import Gateway, Node
    from fleet.domain.nodes.inventory import Inventory, Resident
    from fleet.domain.nodes.trace import Trace


class Pulse(NamedTuple):
    """Whether a node answers; None: not known. `why`: what a look at it came to."""

    up: bool | None
    why: str = ""


class GatewayPulse(NamedTuple):
    """Whether the gateway and the relay behind it both answer; None: not known.

    `age`: seconds since the younger of them was started; None: nobody started them here.
    `shut`: by `serving_place`, why the relay sends no request to that model of a node now.
    """

    up: bool | None
    why: str = ""
    age: float | None = None
    shut: Mapping[str, str] = MappingProxyType({})


class Nodes(Protocol):
    """What is known now; it is looked at again by itself while callers ask."""

    def pulse(self, node: Node) -> Pulse: ...

    def gateway(self, gateway: Gateway) -> GatewayPulse: ...

    def last_request(self, gateway: Gateway, run_id: str, agent: str, since: int) -> Trace | None:
        """The newest request of the run that ended after `since`, as the relay has traced it.

        Of a coder that does not say which run it is: the newest of its agent.
        """


class Backend(Protocol):
    """One node, spoken to as its kind of program is. Both raise `Unavailable`, which says why."""

    def look(self, *, within: float) -> Inventory:
        """What it has now; nothing is loaded by asking. `within` so many seconds, in all."""

    def load(self, upstream: str, *, context: int, within: float) -> Resident:
        """Have a model in memory, to stay, once the node itself says that it is there."""
