"""Who of those that wait may go now, and where.

Nobody is bound to a node before it has room: whoever waits goes where the answer will be soonest, and
may go on waiting for a fast node though a slow one is free. FIFO within a priority.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.nodes.route import Route, Standing, route

if TYPE_CHECKING:
    from collections.abc import Iterable

OVERDUE = 0.25  # of its age: what is longer at work than expected will last longer still


@dataclass(frozen=True, slots=True)
class Ticket:
    """`number` is the order of coming; `choices` are the servings it may go to, best first."""

    number: int
    priority: int  # lower first
    prompt: int
    output: int
    choices: tuple[Choice, ...]


@dataclass(slots=True)
class Room:
    """The slots of a serving or of a node; how long each that is taken still will be."""

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
    """A serving's own room, and its node's; None: the node has no total."""

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
    standing: Standing
    place: Place


@dataclass(frozen=True, slots=True)
class Turn:
    """Where a ticket will go; `now` when there is room already."""

    ticket: Ticket
    route: Route
    now: bool


def turns(line: Iterable[Ticket]) -> list[Turn]:
    """In their order. Rooms are filled on the way, so they are the caller's to throw away."""
    found = []
    for ticket in sorted(line, key=lambda ticket: (ticket.priority, ticket.number)):
        here = [replace(s, wait=s.wait + place.wait()) for s, place in ticket.choices]
        chosen = route(here, prompt=ticket.prompt, output=ticket.output)
        place = next((p for s, p in ticket.choices if s.node == chosen.node), None)
        found.append(Turn(ticket, chosen, now=place is not None and place.free))
        if place is not None:
            place.take(next(e.total for e in chosen.estimates if e.node == chosen.node))
    return found


def remaining(expected: float, elapsed: float) -> float:
    return max(expected - elapsed, elapsed * OVERDUE, 0.01)


def with_first(choices: Iterable[Choice], node: str) -> tuple[Choice, ...]:
    """The one that answered last comes first, so that a draw is settled for it."""
    return tuple(sorted(choices, key=lambda choice: choice.standing.node != node))
