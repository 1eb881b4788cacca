"""Which of the waiting requests may go now, and to which node.

A request is not bound to a node before that node has room: it goes where its answer will come soonest,
and may keep waiting for a fast node while a slow one is free. First come, first served within a priority.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.nodes.route import NodeOutlook, Route, route

if TYPE_CHECKING:
    from collections.abc import Iterable

OVERDUE = 0.25  # a request that takes longer than expected is expected to take 25 % of its age more


@dataclass(frozen=True, slots=True)
class Ticket:
    """A waiting request. `number` is its order of arrival; `choices` the servings it may use."""

    number: int
    priority: int  # lower first
    prompt: int
    output: int
    choices: tuple[Choice, ...]


@dataclass(slots=True)
class Room:
    """The slots of a serving or of a node, and for each taken slot how many seconds it still is."""

    slots: int
    taken: list[float] = field(default_factory=list)

    @property
    def free(self) -> bool:
        return len(self.taken) < self.slots

    def wait(self) -> float:
        """Seconds until a slot is free."""
        if self.free or not self.slots:
            return 0.0
        return sorted(self.taken)[len(self.taken) - self.slots]

    def take(self, seconds: float) -> None:
        self.taken.append(seconds)


@dataclass(frozen=True, slots=True)
class Place:
    """The room of a serving, and that of its node; None: the node has no limit of its own."""

    serving: Room
    node: Room | None = None

    @property
    def free(self) -> bool:
        return self.serving.free and (self.node is None or self.node.free)

    def wait(self) -> float:
        return max(self.serving.wait(), self.node.wait() if self.node else 0.0)

    def take(self, seconds: float) -> None:
        self.serving.take(seconds)
        if self.node is not None:
            self.node.take(seconds)


class Choice(NamedTuple):
    outlook: NodeOutlook
    place: Place


@dataclass(frozen=True, slots=True)
class Turn:
    """Where a ticket will go; `now`: there is room already."""

    ticket: Ticket
    route: Route
    now: bool


def turns(line: Iterable[Ticket]) -> list[Turn]:
    """The turns in order. This fills the rooms of the tickets, so the caller must not reuse them."""
    ordered = []
    for ticket in sorted(line, key=lambda ticket: (ticket.priority, ticket.number)):
        here = [replace(s, wait=s.wait + queue.wait()) for s, queue in ticket.choices]
        chosen = route(here, prompt=ticket.prompt, output=ticket.output)
        queue = next((p for s, p in ticket.choices if s.node == chosen.node), None)
        ordered.append(Turn(ticket, chosen, now=queue is not None and queue.free))
        if queue is not None:
            queue.take(next(e.total for e in chosen.estimates if e.node == chosen.node))
    return ordered


def remaining(expected: float, elapsed: float) -> float:
    return max(expected - elapsed, elapsed * OVERDUE, 0.01)


def with_first(choices: Iterable[Choice], node: str) -> tuple[Choice, ...]:
    """`choices` with the given node first, so that it wins a draw."""
    return tuple(sorted(choices, key=lambda choice: choice.outlook.node != node))
