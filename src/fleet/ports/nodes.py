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
    """Whether a node answers; None: not known. `why`: what the last look at it saw."""

    up: bool | None
    why: str = ""


class GatewayPulse(NamedTuple):
    """Whether the gateway and the relay behind it both answer; None: not known.

    `age`: seconds since the younger of them was started; None: they were not started here.
    `shut`: by `serving_place`, why the relay sends no request to that model of a node now.
    """

    up: bool | None
    why: str = ""
    age: float | None = None
    shut: Mapping[str, str] = MappingProxyType({})


class Nodes(Protocol):
    """What is known about nodes and gateways; a background thread keeps it up to date."""

    def pulse(self, node: Node) -> Pulse: ...

    def gateway(self, gateway: Gateway) -> GatewayPulse: ...

    def last_request(self, gateway: Gateway, run_id: str, agent: str, since: int) -> Trace | None:
        """Return the trace of the run's newest request that ended after `since`.

        For a coder that does not send its run's id, the newest request of its agent.
        """


class Backend(Protocol):
    """The API of one node. Both methods raise `Unavailable`, which says why."""

    def look(self, *, within: float) -> Inventory:
        """Return the node's models without loading one; within so many seconds in all."""

    def load(self, upstream: str, *, context: int, within: float) -> Resident:
        """Load a model to stay in memory; return when the node itself says that it is loaded."""
