"""The line in front of the nodes: a request waits for a free slot, unless no node is left."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fleet.adapters.relay import clock
from fleet.adapters.relay.nodes import NodeWork
from fleet.adapters.relay.recent import Recent
from fleet.adapters.relay.world import RelayWorld, Rooms, at_work
from fleet.domain.data import NamedTuple
from fleet.domain.fleet import Agent
from fleet.domain.nodes.line import LineTicket, Served, ranked, turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.adapters.relay.nodes import ServingState
    from fleet.adapters.relay.request import ModelRequest
    from fleet.adapters.relay.world import WhyNot
    from fleet.domain.fleet import Serving
    from fleet.domain.nodes.route import Route

AGAIN = 0.25  # seconds after which the line looks again at requests that wait for a better node
AT_ONCE = 64  # waiting requests per model to look at; no fleet has more free slots for one
COLLATE = 4.0  # how many times its loading a request lets others pass before a model makes way
ORDINARY = Agent("", "").priority  # of a request without an agent


class NoNode(Exception):
    """No node is left that could answer."""

    def __init__(self, why: WhyNot) -> None:
        super().__init__(why.words)
        self.why = why


class LineArrival(NamedTuple):
    """When a request arrived; it keeps its place when a busy node refuses it."""

    number: int
    at: float


@dataclass(slots=True)
class SlotGrant:
    serving: Serving
    route: Route
    work: NodeWork


@dataclass(slots=True, eq=False)
class _Waiting:
    arrival: LineArrival
    priority: int
    request: ModelRequest
    tried: set[str]
    ready: asyncio.Future[SlotGrant]
    bound_for: str = ""  # the node that it will likely go to
    servings: list[Serving] = field(default_factory=list)
    held_back: str = ""  # why it waits, though a node may be free


class WaitingLine:
    def __init__(self, world: RelayWorld) -> None:
        self._world = world
        self._waiting: dict[int, _Waiting] = {}  # by number
        self._numbers = itertools.count()
        self._again: asyncio.TimerHandle | None = None
        self._last_turn = Recent[tuple[str, str], float]()
        self.priorities: Mapping[str, int] = {}
        self.limits: Mapping[str, int] = {}  # by agent

    def arrive(self) -> LineArrival:
        return LineArrival(next(self._numbers), clock.now())

    async def enter(
        self, request: ModelRequest, tried: set[str], arrival: LineArrival
    ) -> SlotGrant:
        """Wait for a slot; raise `NoNode` when there is no node to wait for."""
        ready: asyncio.Future[SlotGrant] = asyncio.get_running_loop().create_future()
        waiting = self._waiter(request, tried, ready, arrival)
        self._world.note_asked(request)
        if self._has_room(waiting):
            self.move()
        self._look_again()
        try:
            return await ready
        except asyncio.CancelledError:
            if ready.done() and not ready.cancelled() and ready.exception() is None:
                self.leave(ready.result().work)
            raise
        finally:
            self._waiting.pop(arrival.number, None)

    def spare(self, request: ModelRequest, tried: set[str]) -> SlotGrant | None:
        """Return a free slot that no request waits for, on a node not tried yet, or None."""
        ready: asyncio.Future[SlotGrant] = asyncio.get_running_loop().create_future()
        waiting = self._waiter(request, tried, ready, self.arrive())
        if self._has_room(waiting):
            self.move()
        self._waiting.pop(waiting.arrival.number, None)
        if not ready.done() or ready.exception() is not None:
            return None
        return ready.result()

    def _waiter(
        self,
        request: ModelRequest,
        tried: set[str],
        ready: asyncio.Future[SlotGrant],
        arrival: LineArrival,
    ) -> _Waiting:
        priority = self.priorities.get(request.agent, ORDINARY)
        waiting = _Waiting(arrival, priority, request, tried, ready)
        self._waiting[arrival.number] = waiting
        return waiting

    def _has_room(self, waiting: _Waiting) -> bool:
        """Whether the request could get a slot or be refused now, so that `move` makes sense."""
        servings = list(self._world.candidates(waiting.request, waiting.tried))
        rooms = Rooms({})
        states = [(self._world.state(serving), serving.slots) for serving in servings]
        return not servings or any(rooms.room_of(state, slots).free for state, slots in states)

    def leave(self, work: NodeWork) -> None:
        """Free the slot."""
        work.end()
        self.move()

    def move(self) -> None:
        """Send the requests that can go; call it when anything has changed."""
        if not self._waiting:
            return
        models = Counter(self._world.name_of(w.request.model) for w in self._waiting.values())
        rooms, served = Rooms(models), self._served()
        looked_at = self._looked_at(rooms.now, served)
        in_demand = self._in_demand(looked_at)
        tickets = [self._ticket(waiting, rooms, in_demand) for waiting in looked_at]
        for turn in turns(tickets, served):
            waiting = self._waiting[turn.ticket.number]
            waiting.bound_for = turn.route.node
            if turn.limited:
                most, agent = turn.ticket.limit, turn.ticket.agent
                waiting.held_back = f"it waited: at most {most} of {agent} at once"
            if turn.at_once:
                self._send(waiting, replace(turn.route, held_back=waiting.held_back))
        self._look_again()

    def _look_again(self) -> None:
        if self._waiting and self._again is None:
            self._again = asyncio.get_running_loop().call_later(AGAIN, self._move_again)

    def _served(self) -> Served:
        now = clock.now()
        idle = {who: now - at for who, at in self._last_turn.items()}
        return Served(at_work(self._world.nodes.values()), idle)

    def _looked_at(self, now: float, served: Served) -> list[_Waiting]:
        """Return the first requests of each model, in turns; refuse those with no node left."""
        tickets = [self._bare_ticket(waiting, now) for waiting in self._waiting.values()]
        seen, looked_at = Counter[str](), []
        for ticket in ranked(tickets, served):
            waiting = self._waiting[ticket.number]
            model = self._world.name_of(waiting.request.model)
            if seen[model] >= AT_ONCE:
                continue
            waiting.servings = list(self._world.candidates(waiting.request, waiting.tried))
            if waiting.servings:
                seen[model] += 1
                looked_at.append(waiting)
            else:
                self._refuse(waiting)
        return looked_at

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Count waiting requests by model, and by the node that they will likely go to."""
        waiting = self._waiting.values()
        models = Counter(each.request.model for each in waiting)
        return models, Counter(each.bound_for for each in waiting if each.bound_for)

    def __len__(self) -> int:
        return len(self._waiting)

    def _move_again(self) -> None:
        self._again = None
        self.move()

    def _bare_ticket(self, waiting: _Waiting, now: float) -> LineTicket:
        """Return what decides a request's order in the line."""
        request, arrival = waiting.request, waiting.arrival
        return LineTicket(
            arrival.number,
            waiting.priority,
            request.prompt_tokens,
            0,
            (),
            waited=now - arrival.at,
            agent=request.party,
            conversation=request.session,
        )

    def _ticket(
        self, waiting: _Waiting, rooms: Rooms, in_demand: Mapping[int, set[str]]
    ) -> LineTicket:
        request = waiting.request
        return replace(
            self._bare_ticket(waiting, rooms.now),
            output=self._world.expected_output(request),
            choices=self._world.options(request, waiting.servings, rooms),
            hold=self._hold(waiting, in_demand),
            limit=self.limits.get(request.agent, 0),
        )

    def _in_demand(self, looked_at: list[_Waiting]) -> dict[int, set[str]]:
        """Return, by node, the models in its memory that a request is using or waiting for."""
        wanted = {work.serving for node in self._world.nodes.values() for work in node.work}
        wanted |= {self._world.state(s) for waiting in looked_at for s in waiting.servings}
        models: dict[int, set[str]] = {}
        for state in wanted:
            if state.resident:
                models.setdefault(id(state.node), set()).add(state.name)
        return models

    def _hold(self, waiting: _Waiting, in_demand: Mapping[int, set[str]]) -> float:
        """Return the seconds to let others pass whose model would be evicted for this one's."""
        states = [self._world.state(serving) for serving in waiting.servings]
        if not all(self._makes_way(state, in_demand) for state in states):
            return 0.0
        return COLLATE * max(state.full_load() for state in states)

    def _makes_way(self, state: ServingState, in_demand: Mapping[int, set[str]]) -> bool:
        """Whether loading this model would evict one that is in demand from the node's memory."""
        wanted = in_demand.get(id(state.node))
        if not wanted or state.resident:
            return False
        return any(not wanted.isdisjoint(pair) for pair in state.node.rivals if state.name in pair)

    def _refuse(self, waiting: _Waiting) -> None:
        del self._waiting[waiting.arrival.number]
        if not waiting.ready.done():
            waiting.ready.set_exception(NoNode(self._world.why_not(waiting.request)))

    def give_back(self, request: ModelRequest) -> None:
        """Undo the turn of a request that got no answer."""
        for who in _whose_turn(request):
            self._last_turn.pop(who, None)

    def _note_turn(self, request: ModelRequest) -> None:
        for who in _whose_turn(request):
            self._last_turn.note(who, clock.now())

    def _send(self, waiting: _Waiting, route: Route) -> None:
        del self._waiting[waiting.arrival.number]
        if waiting.ready.done():
            return
        request = waiting.request
        self._note_turn(request)
        serving = next(s for s in waiting.servings if s.node.name == route.node)
        state = self._world.state(serving)
        work = NodeWork(state, route.chosen, request)
        work.begin()
        state.remember(request)
        waiting.ready.set_result(SlotGrant(serving, route, work))


def _whose_turn(request: ModelRequest) -> set[tuple[str, str]]:
    """Return the keys of the turns that a request takes: the agent's and its conversation's."""
    return {(request.party, ""), (request.party, request.session)}
