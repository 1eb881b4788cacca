"""The machines that serve models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from fleet.domain.fleet import Node
    from fleet.domain.nodes.inventory import Inventory, Resident


class Pulse(NamedTuple):
    """Whether a node answers; None: not known. `why`: what a look at it came to."""

    up: bool | None
    why: str = ""


class Nodes(Protocol):
    def pulse(self, node: Node) -> Pulse:
        """What is known now; it is looked at again by itself while somebody asks."""


class Backend(Protocol):
    """One node, spoken to as its kind of program is. Both raise `Unavailable`, which says why."""

    def look(self, *, within: float) -> Inventory:
        """What it has now; nothing is loaded by asking. `within` so many seconds, in all."""

    def load(self, upstream: str, *, context: int, within: float) -> Resident:
        """Have a model in memory, to stay, once the node itself says that it is there."""
