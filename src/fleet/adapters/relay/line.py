"""The line in front of the nodes: a request waits for a free slot, unless no node is left."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fleet.adapters.relay import clock
from fleet.adapters.relay.nodes import Work
from fleet.adapters.relay.world import Rooms, World, at_work
from fleet.domain.fleet import Agent
from fleet.domain.nodes.line import Ticket, older, turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.adapters.relay.nodes import ServingState
    from fleet.adapters.relay.request import ModelRequest
    from fleet.adapters.relay.world import WhyNot
    from fleet.domain.fleet import Model, Serving
    from fleet.domain.nodes.route import Route

AGAIN = 0.25  # seconds after which the line looks again at requests that wait for a better node
AT_ONCE = 64  # requests for one model that are looked at; no fleet has more slots free for it
COLLATE = 4.0  # how many times its loading a request lets others pass before a model makes way
ORDINARY = Agent("", "").priority  # of a request without an agent


class NoNode(Exception):
    """No node is left that could answer."""

    def __init__(self, why: WhyNot) -> None:
        super().__init__(why.words)
        self.why = why


@dataclass(slots=True)
class Grant:
    serving: Serving
    route: Route
    work: Work


@dataclass(slots=True, eq=False)
class _Waiting:
    number: int
    priority: int
    request: ModelRequest
    tried: set[str]
    ready: asyncio.Future[Grant]
    since: float
    bound_for: str = ""  # the node that it will likely go to
    servings: list[Serving] = field(default_factory=list)
    held_back: str = ""  # why it waits, though a node may be free


class Line:
    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: list[_Waiting] = []
        self._numbers = itertools.count()
        self._again: asyncio.TimerHandle | None = None
        self.priorities: Mapping[str, int] = {}
        self.limits: Mapping[str, int] = {}  # by agent

    async def enter(self, request: ModelRequest, tried: set[str]) -> Grant:
        """Wait for a slot; raise `NoNode` when there is no node to wait for."""
        ready: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        waiting = self._waiter(request, tried, ready)
        self._waiting.append(waiting)
        self._world.note_asked(request)
        self.move()
        try:
            return await ready
        except asyncio.CancelledError:
            if ready.done() and not ready.cancelled() and ready.exception() is None:
                self.leave(ready.result().work)
            raise
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def spare(self, request: ModelRequest, tried: set[str]) -> Grant | None:
        """A slot that is free now and that nobody waits for, on a node that was not tried."""
        ready: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        waiting = self._waiter(request, tried, ready)
        self._waiting.append(waiting)
        self.move()
        if waiting in self._waiting:
            self._waiting.remove(waiting)
        if not ready.done() or ready.exception() is not None:
            return None
        return ready.result()

    def _waiter(
        self, request: ModelRequest, tried: set[str], ready: asyncio.Future[Grant]
    ) -> _Waiting:
        priority = self.priorities.get(request.agent, ORDINARY)
        return _Waiting(next(self._numbers), priority, request, tried, ready, clock.now())

    def leave(self, work: Work) -> None:
        """Free the slot."""
        work.end()
        self.move()

    def move(self) -> None:
        """Send the requests that can go; call it when anything has changed."""
        if not self._waiting:
            return
        waiting_for = Counter(self._model(waiting).name for waiting in self._waiting)
        rooms, seen = Rooms(waiting_for), Counter[str]()
        tickets: list[Ticket] = []
        for waiting in sorted(self._waiting, key=lambda w: self._rank(w, rooms.now)):
            waiting.servings = list(self._world.candidates(waiting.request, waiting.tried))
            seen[self._model(waiting).name] += 1
            if not waiting.servings:
                self._refuse(waiting)
            elif seen[self._model(waiting).name] <= AT_ONCE:
                tickets.append(self._ticket(waiting, rooms))
        self._take_turns(tickets)
        if self._waiting and self._again is None:
            self._again = asyncio.get_running_loop().call_later(AGAIN, self._move_again)

    def _rank(self, waiting: _Waiting, now: float) -> tuple[int, int]:
        """Who has waited for long is looked at as well, whatever the number of those above it."""
        return older(waiting.priority, now - waiting.since), waiting.number

    def _take_turns(self, tickets: list[Ticket]) -> None:
        by_number = {waiting.number: waiting for waiting in self._waiting}
        for turn in turns(tickets, at_work(self._world.nodes.values())):
            waiting = by_number[turn.ticket.number]
            waiting.bound_for = turn.route.node
            if turn.limited:
                most, agent = turn.ticket.limit, turn.ticket.agent
                waiting.held_back = f"it waited: at most {most} of {agent} at once"
            if turn.now:
                self._send(waiting, replace(turn.route, held_back=waiting.held_back))

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """How many requests wait: by model, and by the node that they will likely go to."""
        models = Counter(w.request.model for w in self._waiting)
        return models, Counter(w.bound_for for w in self._waiting if w.bound_for)

    def __len__(self) -> int:
        return len(self._waiting)

    def _model(self, waiting: _Waiting) -> Model:
        return self._world.models[waiting.request.model]

    def _move_again(self) -> None:
        self._again = None
        self.move()

    def _ticket(self, waiting: _Waiting, rooms: Rooms) -> Ticket:
        request = waiting.request
        return Ticket(
            waiting.number,
            waiting.priority,
            request.prompt_tokens,
            self._world.expected_output(request),
            self._world.options(request, waiting.servings, rooms),
            waited=rooms.now - waiting.since,
            agent=request.party,
            conversation=request.session,
            hold=self._hold(waiting),
            limit=self.limits.get(request.agent, 0),
        )

    def _hold(self, waiting: _Waiting) -> float:
        """Seconds to wait for those whose model would have to go from memory for this one's."""
        states = [self._world.state(serving) for serving in waiting.servings]
        if not all(self._makes_way(state) for state in states):
            return 0.0
        return COLLATE * max(state.full_load() for state in states)

    def _makes_way(self, state: ServingState) -> bool:
        """Whether a model that is in demand would have to go from the node's memory."""
        if state.resident:
            return False
        names = {name for pair in state.node.rivals if state.name in pair for name in pair}
        wanted = [work.serving for work in state.node.work]
        wanted += [self._world.state(s) for waiting in self._waiting for s in waiting.servings]
        return any(
            other.node is state.node and other.resident and other.name in names for other in wanted
        )

    def _refuse(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        if not waiting.ready.done():
            waiting.ready.set_exception(NoNode(self._world.why_not(waiting.request)))

    def _send(self, waiting: _Waiting, route: Route) -> None:
        self._waiting.remove(waiting)
        if waiting.ready.done():
            return
        serving = next(s for s in waiting.servings if s.node.name == route.node)
        state = self._world.state(serving)
        work = Work(state, route.chosen, waiting.request.party)
        work.begin()
        state.remember(waiting.request)
        waiting.ready.set_result(Grant(serving, route, work))
