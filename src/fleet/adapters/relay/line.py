"""The line in front of the nodes: a request waits for a free slot, unless no node is left."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleet.adapters.relay.nodes import Rooms, Work, World
from fleet.domain.nodes.line import Ticket, turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.adapters.relay.request import ModelRequest
    from fleet.domain.fleet import Serving
    from fleet.domain.nodes.route import Route

AGAIN = 0.25  # seconds after which the line looks again at requests that wait for a better node
AT_ONCE = 64  # requests at the front that are looked at; no fleet has more slots free


class NoNode(Exception):
    """No node is left that could answer; after `after` seconds it is worth trying again."""

    def __init__(self, why: str, after: float) -> None:
        super().__init__(why)
        self.after = after


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
    bound_for: str = ""  # the node that it will likely go to
    servings: list[Serving] = field(default_factory=list)


class Line:
    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: list[_Waiting] = []
        self._numbers = itertools.count()
        self._again: asyncio.TimerHandle | None = None
        self.priorities: Mapping[str, int] = {}

    async def enter(self, request: ModelRequest, tried: set[str]) -> Grant:
        """Wait for a slot; raise `NoNode` when there is no node to wait for."""
        ready: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        priority = self.priorities.get(request.agent, 0)
        waiting = _Waiting(next(self._numbers), priority, request, tried, ready)
        self._waiting.append(waiting)
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

    def leave(self, work: Work) -> None:
        """Free the slot."""
        work.serving.work.discard(work)
        work.serving.node.work.discard(work)
        self.move()

    def move(self) -> None:
        """Send the requests that can go; call it when anything has changed."""
        if not self._waiting:
            return
        rooms = Rooms()
        front = sorted(self._waiting, key=lambda w: (w.priority, w.number))
        by_number = {w.number: w for w in front}
        tickets: list[Ticket] = []
        for waiting in front:
            waiting.servings = list(self._world.candidates(waiting.request, waiting.tried))
            if not waiting.servings:
                self._refuse(waiting)
            elif len(tickets) < AT_ONCE:
                tickets.append(self._ticket(waiting, rooms))
        for turn in turns(tickets):
            waiting = by_number[turn.ticket.number]
            waiting.bound_for = turn.route.node
            if turn.now:
                self._send(waiting, turn.route)
        if self._waiting and self._again is None:
            self._again = asyncio.get_running_loop().call_later(AGAIN, self._move_again)

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """How many requests wait: by model, and by the node that they will likely go to."""
        models = Counter(w.request.model for w in self._waiting)
        return models, Counter(w.bound_for for w in self._waiting if w.bound_for)

    def __len__(self) -> int:
        return len(self._waiting)

    def _move_again(self) -> None:
        self._again = None
        self.move()

    def _ticket(self, waiting: _Waiting, rooms: Rooms) -> Ticket:
        request = waiting.request
        choices = self._world.options(request, waiting.servings, rooms)
        output = self._world.expected_output(request)
        return Ticket(waiting.number, waiting.priority, request.prompt_tokens, output, choices)

    def _refuse(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        if not waiting.ready.done():
            waiting.ready.set_exception(NoNode(*self._world.why_not(waiting.request)))

    def _send(self, waiting: _Waiting, route: Route) -> None:
        self._waiting.remove(waiting)
        if waiting.ready.done():
            return
        serving = next(s for s in waiting.servings if s.node.name == route.node)
        estimate = next(e for e in route.estimates if e.node == route.node)
        state = self._world.state(serving)
        work = Work(state, estimate.total - estimate.wait, estimate.cached)
        state.work.add(work)
        state.node.work.add(work)
        waiting.ready.set_result(Grant(serving, route, work))
