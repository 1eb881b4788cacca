"""Watches the nodes: probes that load no model, and the loading of models that will be asked for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp

from fleet.adapters.relay import clock
from fleet.adapters.relay.connections import NotANode, why_of
from fleet.base.loose_json import integer, mappings
from fleet.domain.errors import Unavailable
from fleet.domain.nodes import breaker as breakers
from fleet.domain.nodes import speed as paces
from fleet.domain.nodes.breaker import NodeResult, State
from fleet.domain.nodes.inventory import plain_name
from fleet.domain.nodes.kinds import kind_of
from fleet.domain.nodes.occupancy import Occupancy, page_of, pages_of, read_page
from fleet.domain.nodes.patience import Cold, worth_loading
from fleet.domain.nodes.speed import Timing

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from fleet.adapters.relay.connections import Connections
    from fleet.adapters.relay.line import WaitingLine
    from fleet.adapters.relay.nodes import NodeState, ServingState
    from fleet.adapters.relay.world import RelayWorld
    from fleet.domain.fleet import Model, Serving

ROUND = 0.2  # seconds between rounds
STOCK = 4.0  # seconds between looks at the loaded models: one that was lost is back within 10
COUNT, COUNT_IDLE = 1.0, 4.0  # seconds between looks who else is at work there
ACTIVE = 30.0  # seconds after a request in which the next is expected
ALREADY_THERE = 10.0  # seconds to load what is in memory, after which its runner is stuck
MISSES = 2  # looks in a row without an answer after which the node is down


class NodeWatch:
    """Probes nodes that are down, nodes that are silent at work, and the loaded models."""

    def __init__(self, world: RelayWorld, line: WaitingLine, connections: Connections) -> None:
        self._world, self._line, self._connections = world, line, connections
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        while True:
            now = clock.now()
            for state in self._world.nodes.values():
                if not state.looking and self._due(state, now):
                    state.looking = True
                    self._do(self._look(state))
                if not state.counting and self._count_due(state, now):
                    state.counting = True
                    self._do(self._count(state))
            for model, serving, each in self._world.servings():
                self._tend(model, serving, each, now)
            await asyncio.sleep(ROUND)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _tend(self, model: Model, serving: Serving, state: ServingState, now: float) -> None:
        """Try again a model that is shut off, and load one that will be needed soon."""
        loads = kind_of(serving.node.kind).is_ollama
        if state.loading or state.work or not state.node.up:
            return
        if breakers.probe_due(state.breaker, now):
            if loads:
                self._do(self._load(serving, state))
            else:  # only a real request shows whether the model answers
                state.breaker = breakers.probed(state.breaker, up=True, now=now)
                self._line.move()
        elif loads and state.up and not state.resident and self._worth_loading(model, state):
            self._do(self._load(serving, state))

    def _worth_loading(self, model: Model, state: ServingState) -> bool:
        node = state.node
        return worth_loading(
            Cold(
                idle=self._world.since_asked(model),
                others=bool(node.resident),
                room=state.was_resident and not any(state.name in pair for pair in node.rivals),
                busy=any(s.loading and s.node is node for _, _, s in self._world.servings()),
            )
        )

    async def _load(self, serving: Serving, state: ServingState) -> None:
        state.loading = clock.now()
        try:
            patience = ALREADY_THERE if state.resident else serving.timeout
            why = await self._connections.load(serving, patience)
            took = clock.now() - state.loading
        finally:
            state.loading = 0.0
        now = clock.now()
        if state.breaker.state is State.OPEN:
            state.breaker = breakers.probed(state.breaker, up=not why, now=now, why=why)
        elif why:
            state.note(NodeResult.FAILED, why)
        if not why:
            state.loaded(serving.context)
            state.pace = paces.after(state.pace, Timing(loading=took))
        state.node.restock = True
        self._line.move()

    def _due(self, state: NodeState, now: float) -> bool:
        if not state.up:
            return breakers.probe_due(state.breaker, now)
        if not state.looked:
            return True
        pause = self._connections.settings.look
        silent = any(now - work.heard > pause for work in state.work)
        stock = kind_of(state.node.kind).is_ollama and (state.restock or now - state.looked > STOCK)
        return stock or (silent and now - state.looked > pause)

    def _count_due(self, state: NodeState, now: float) -> bool:
        if not state.up or not page_of(kind_of(state.node.kind).pages):
            return False
        active = self._world.since_any_asked() < ACTIVE
        return now - state.counted_at >= (COUNT if active else COUNT_IDLE)

    async def _count(self, state: NodeState) -> None:
        """Count other clients' requests at the node by its metrics page; none without the page."""
        pages, before = kind_of(state.node.kind).pages, len(state.work)
        there = None
        try:
            with suppress(aiohttp.ClientError, OSError, TimeoutError, Unavailable):
                for page in pages_of(pages):
                    if there is None:
                        there = read_page(pages, await self._connections.text(state.node, page))
        finally:
            state.counting, state.counted_at = False, clock.now()
        # A request that began or ended meanwhile is ours all the same.
        ours = max(before, len(state.work))
        state.strangers = state.strangers.seen(there or Occupancy(0), ours, clock.now())

    async def _look(self, state: NodeState) -> None:
        try:
            why, sure = await self._finding(state)
        finally:
            state.looking = False
            state.looked = clock.now()
        now = clock.now()
        if not state.up:
            state.breaker = breakers.probed(state.breaker, up=not why, now=now, why=why)
            self._line.move()
            return
        state.misses = state.misses + 1 if why else 0
        if why and (sure or state.misses >= MISSES):
            state.note(NodeResult.UNREACHABLE, why)
            for work in list(state.work):
                if now - work.heard > self._connections.settings.connect:
                    work.abort(now)
            self._line.move()

    async def _finding(self, state: NodeState) -> tuple[str, bool]:
        """Return why the node is down, if it is, and whether that is certain."""
        node = state.node
        try:
            status, _ = await self._connections.get(node, kind_of(node.kind).quick)
            if status >= 500:
                return f"it answers with status {status}", False
            if kind_of(node.kind).is_ollama:
                await self._stock(state)
        except (
            aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, NotANode
        ) as error:  # fmt: skip
            return why_of(error), True
        except Unavailable as error:
            return str(error), False
        except TimeoutError:
            return "it accepts connections, but sends nothing", False
        except (aiohttp.ClientError, OSError) as error:
            return why_of(error), False
        return "", True

    async def _stock(self, state: NodeState) -> None:
        state.restock = False
        status, reply = await self._connections.get(state.node, "/api/ps")
        if status == 200 and isinstance(reply, dict) and isinstance(reply.get("models"), list):
            loaded = {
                plain_name(str(model.get("model") or model.get("name"))): integer(
                    model.get("context_length")
                )
                for model in mappings(reply["models"])
            }
            state.saw_resident(loaded)
            for _, _, serving in self._world.servings():
                if serving.node is state:
                    serving.saw(loaded=serving.name in loaded)
