"""Which of the waiting requests may go now, and to which node.

A request is not bound to a node before that node has room: it goes where its answer will come soonest,
and may keep waiting for a fast node while a slow one is free. Those of the same priority take turns by
agent and by conversation; who waits long enough goes before a higher priority.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.nodes.route import NodeOutlook, Route, route

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OVERDUE = 0.25  # a request that takes longer than expected is expected to take 25 % of its age more
UNLIMITED = 1 << 20  # slots of a node without a total of its own
AGEING = 5.0  # seconds of waiting that lift a request by one priority


@dataclass(frozen=True, slots=True)
class Ticket:
    """A waiting request. `number` is its order of arrival; `choices` the servings it may use."""

    number: int
    priority: int  # lower first
    prompt: int
    output: int
    choices: tuple[Choice, ...]
    waited: float = 0.0  # seconds
    agent: str = ""
    conversation: str = ""
    hold: float = 0.0  # seconds to let those pass whose model its own would take the memory of
    limit: int = 0  # requests of its agent that may be at work at once; 0: any number


@dataclass(slots=True)
class Room:
    """The slots of a serving or of a node, and for each taken slot how many seconds it still is."""

    slots: int
    taken: list[float] = field(default_factory=list)
    at_work: int = 0  # requests that are, or will be, at work now

    def __post_init__(self) -> None:
        self.at_work = len(self.taken)

    @property
    def free(self) -> bool:
        return len(self.taken) < self.slots

    def wait(self) -> float:
        """Seconds until a slot is free."""
        if self.free or not self.slots:
            return 0.0
        return sorted(self.taken)[len(self.taken) - self.slots]

    def take(self, seconds: float, *, now: bool = True) -> None:
        self.taken.append(seconds)
        self.at_work += now


@dataclass(frozen=True, slots=True)
class Place:
    """The room of a serving, and that of its node."""

    serving: Room
    node: Room = field(default_factory=lambda: Room(UNLIMITED))

    @property
    def free(self) -> bool:
        return self.serving.free and self.node.free

    @property
    def beside(self) -> int:
        """How many others will be at work there when the next one begins."""
        return self.node.at_work if self.free else max(0, self.node.at_work - 1)

    def wait(self) -> float:
        return max(self.serving.wait(), self.node.wait())

    def take(self, seconds: float) -> None:
        free = self.free
        for room in (self.serving, self.node):
            room.take(seconds, now=free)


class Choice(NamedTuple):
    outlook: NodeOutlook
    place: Place


@dataclass(frozen=True, slots=True)
class Turn:
    """Where a ticket will go; `now`: there is room already. `limited`: its agent has enough."""

    ticket: Ticket
    route: Route
    now: bool
    limited: bool = False


def turns(line: Iterable[Ticket], at_work: Mapping[str, int] | None = None) -> list[Turn]:
    """The turns in order. This fills the rooms of the tickets, so the caller must not reuse them."""
    ordered = []
    working = Counter(at_work or {})
    for ticket in ranked(line, at_work or {}):
        here = [
            replace(s, wait=s.wait + there.wait(), beside=s.beside + there.beside)
            for s, there in ticket.choices
        ]
        chosen = route(here, prompt=ticket.prompt, output=ticket.output)
        there = next((p for s, p in ticket.choices if s.node == chosen.node), None)
        limited = bool(ticket.limit) and working[ticket.agent] >= ticket.limit
        may = there is not None and not on_hold(ticket) and not limited
        goes = may and there is not None and there.free
        ordered.append(Turn(ticket, chosen, now=goes, limited=limited))
        working[ticket.agent] += goes
        if may and there is not None:
            there.take(chosen.chosen.total)
    return ordered


def ranked(line: Iterable[Ticket], at_work: Mapping[str, int]) -> list[Ticket]:
    """In the order in which they may go. `at_work`: by agent, the requests that nodes work on.

    A request that is on hold comes after all others of its priority, and does not go yet.
    """
    arrived = sorted(line, key=lambda ticket: ticket.number)
    talks: Counter[tuple[str, str]] = Counter()
    by_talk = []
    for ticket in arrived:
        talk = (ticket.agent, ticket.conversation)
        by_talk.append((talks[talk], ticket.number, ticket))
        talks[talk] += 1
    agents = Counter(at_work)
    keys = {}
    for _, number, ticket in sorted(by_talk, key=lambda each: each[:2]):
        keys[number] = (aged(ticket), on_hold(ticket), agents[ticket.agent], number)
        agents[ticket.agent] += 1
    return sorted(arrived, key=lambda ticket: keys[ticket.number])


def aged(ticket: Ticket) -> int:
    """Its priority, and one less for each `AGEING` seconds: nobody waits for ever."""
    return older(ticket.priority, ticket.waited - ticket.hold)


def older(priority: int, waited: float) -> int:
    return priority - int(max(0.0, waited) / AGEING)


def on_hold(ticket: Ticket) -> bool:
    return ticket.waited < ticket.hold


def remaining(expected: float, elapsed: float) -> float:
    return max(expected - elapsed, elapsed * OVERDUE, 0.01)


def with_first(choices: Iterable[Choice], node: str) -> tuple[Choice, ...]:
    """`choices` with the given node first, so that it wins a draw."""
    return tuple(sorted(choices, key=lambda choice: choice.outlook.node != node))
