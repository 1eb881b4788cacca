"""Which of the waiting requests may go now, and to which node.

A request is not bound to a node before that node has room: it goes where its answer will come soonest,
and may keep waiting for a fast node while a slow one is free. Requests of the same priority take turns
by agent and by conversation, even where one slot serves them all. A request that waits long enough
goes before those of a higher priority.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.nodes.route import NodeOutlook, Route, route

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OVERDUE = 0.25  # a request that takes longer than expected is expected to take 25 % of its age more
UNLIMITED = 1 << 20  # slots of a node without a total of its own
AGEING = 5.0  # seconds of waiting that lift a request by one priority


@dataclass(frozen=True, slots=True)
class LineTicket:
    """A waiting request. `number` is its order of arrival; `choices` the servings it may use."""

    number: int
    priority: int  # lower first
    prompt: int
    output: int
    choices: tuple[ServingChoice, ...]
    waited: float = 0.0  # seconds
    agent: str = ""
    conversation: str = ""
    hold: float = (
        0.0  # seconds to let requests pass whose model it would evict from the node's memory
    )
    limit: int = 0  # requests of its agent that may be at work at once; 0: any number


@dataclass(slots=True)
class Room:
    """The slots of a serving or of a node. `taken`: for each slot in use, the seconds until it is free."""

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

    def take(self, seconds: float, *, at_once: bool = True) -> None:
        self.taken.append(seconds)
        self.at_work += at_once


@dataclass(frozen=True, slots=True)
class ServingRoom:
    """The room of a serving, and that of its node."""

    serving: Room
    node: Room = field(default_factory=lambda: Room(UNLIMITED))

    @property
    def free(self) -> bool:
        return self.serving.free and self.node.free

    @property
    def beside(self) -> int:
        """How many other requests the node will be processing when the next one begins."""
        return self.node.at_work if self.free else max(0, self.node.at_work - 1)

    def wait(self) -> float:
        return max(self.serving.wait(), self.node.wait())

    def take(self, seconds: float) -> None:
        free = self.free
        for room in (self.serving, self.node):
            room.take(seconds, at_once=free)


class ServingChoice(NamedTuple):
    outlook: NodeOutlook
    place: ServingRoom


@dataclass(frozen=True, slots=True)
class Turn:
    """Where a ticket will go. `at_once`: it may go now. `limited`: its agent is at its limit."""

    ticket: LineTicket
    route: Route
    at_once: bool
    limited: bool = False


class Served(NamedTuple):
    """What agents have been served so far.

    `at_work`: by agent, how many of its requests nodes are processing. `idle`: seconds since the last
    turn of an agent, under `(agent, "")`, or of its conversation, under `(agent, conversation)`.
    """

    at_work: Mapping[str, int] = MappingProxyType({})
    idle: Mapping[tuple[str, str], float] = MappingProxyType({})


NOBODY = Served()


def turns(line: Iterable[LineTicket], served: Served = NOBODY) -> list[Turn]:
    """The turns in order. This fills the rooms of the tickets, so the caller must not reuse them."""
    ordered = []
    working = Counter(served.at_work)
    for ticket in ranked(line, served):
        servings = [
            replace(s, wait=s.wait + room.wait(), beside=s.beside + room.beside)
            for s, room in ticket.choices
        ]
        chosen = route(servings, prompt=ticket.prompt, output=ticket.output)
        room = next((p for s, p in ticket.choices if s.node == chosen.node), None)
        limited = bool(ticket.limit) and working[ticket.agent] >= ticket.limit
        may = room is not None and not on_hold(ticket) and not limited
        goes = may and room is not None and room.free
        ordered.append(Turn(ticket, chosen, at_once=goes, limited=limited))
        working[ticket.agent] += goes
        if may and room is not None:
            room.take(chosen.chosen.total)
    return ordered


def ranked(line: Iterable[LineTicket], served: Served = NOBODY) -> list[LineTicket]:
    """The tickets in the order in which they may go.

    Within a priority, agents take turns, and so do the conversations of an agent. Ageing is by
    priority, not by agent: else an agent with a long line would always go first. A request on hold
    comes after all others of its priority, and does not go yet.
    """
    by_priority: dict[int, list[LineTicket]] = {}
    for ticket in sorted(line, key=lambda each: each.number):
        by_priority.setdefault(ticket.priority, []).append(ticket)
    keyed = []
    for priority, tickets in by_priority.items():
        waits = sorted((ticket.waited - ticket.hold for ticket in tickets), reverse=True)
        for waited, (turn, ticket) in zip(waits, _by_turns(tickets, served), strict=True):
            keyed.append(((older(priority, waited), *turn), ticket))
    keyed.sort(key=lambda each: each[0])
    return [ticket for _, ticket in keyed]


def _by_turns(
    tickets: Iterable[LineTicket], served: Served
) -> list[tuple[tuple[bool, int, float, int], LineTicket]]:
    """The tickets of one priority in the order of their turns, each with its sort key."""
    talks: Counter[tuple[str, str]] = Counter()
    by_talk = []
    for ticket in tickets:
        talk = (ticket.agent, ticket.conversation)
        by_talk.append((talks[talk], -_without_turn(ticket, talk, served), ticket.number, ticket))
        talks[talk] += 1
    agents = Counter(served.at_work)
    keyed = []
    for _, _, number, ticket in sorted(by_talk, key=lambda each: each[:3]):
        since = _without_turn(ticket, (ticket.agent, ""), served)
        keyed.append(((on_hold(ticket), agents[ticket.agent], -since, number), ticket))
        agents[ticket.agent] += 1
    return sorted(keyed, key=lambda each: each[0])


def _without_turn(ticket: LineTicket, who: tuple[str, str], served: Served) -> float:
    """The seconds for which an agent or a conversation has waited without a turn."""
    return min(ticket.waited, served.idle.get(who, ticket.waited))


def older(priority: int, waited: float) -> int:
    return priority - int(max(0.0, waited) / AGEING)


def on_hold(ticket: LineTicket) -> bool:
    return ticket.waited < ticket.hold


def remaining(expected: float, elapsed: float) -> float:
    return max(expected - elapsed, elapsed * OVERDUE, 0.01)


def with_first(choices: Iterable[ServingChoice], node: str) -> tuple[ServingChoice, ...]:
    """`choices` with this node first, so that it wins a tie."""
    return tuple(sorted(choices, key=lambda choice: choice.outlook.node != node))
