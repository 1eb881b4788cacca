"""What the relay knows of each node and serving, from the requests that passed through it."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from fleet.adapters.relay.plan import speed_key
from fleet.adapters.relay.wires import Clock, timing, tokens
from fleet.domain.nodes import breaker as breakers
from fleet.domain.nodes import prompt_cache as prefix
from fleet.domain.nodes import speed as paces
from fleet.domain.nodes.breaker import Breaker, Result, State
from fleet.domain.nodes.line import Choice, Place, Room, remaining, with_first
from fleet.domain.nodes.route import NodeOutlook
from fleet.domain.nodes.speed import Pace
from fleet.domain.nodes.trace import Tokens

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fleet.adapters.relay.request import ModelRequest
    from fleet.adapters.relay.wires import ReplyReader
    from fleet.domain.fleet import Fleet, Model, Node, Serving
    from fleet.domain.nodes.prompt_cache import Step

SESSIONS = 4096  # whose last node is remembered


class Work:
    """A request that a node is working on."""

    def __init__(self, serving: ServingState, expected: float, cached: int) -> None:
        self.serving = serving
        self.cached = cached
        self.expected = expected
        self.began = time.monotonic()
        self.heard = self.began  # when the last byte came from the node
        self.timeout: asyncio.Timeout | None = None  # aborts the request

    def abort(self, now: float) -> None:
        if self.timeout is not None:
            self.timeout.reschedule(now)


class NodeState:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.breaker = Breaker()
        self.resident: dict[str, int] | None = None  # unknown, or not Ollama
        self.work: set[Work] = set()
        self.misses = 0
        self.looked = 0.0
        self.looking = False

    def note(self, result: Result, why: str = "", rest: float = 0.0) -> None:
        now = time.monotonic()
        self.breaker = breakers.after(self.breaker, result, now=now, why=why, rest=rest)

    @property
    def up(self) -> bool:
        return self.breaker.state is not State.OPEN

    def room(self, now: float) -> Room | None:
        limit = self.node.max_parallel
        gentle = self.breaker.state is State.GENTLE
        if not limit and not gentle and now >= self.breaker.busy_until:
            return None
        slots = breakers.allowed(self.breaker, limit or 1 << 20, now)
        return Room(slots, [remaining(w.expected, now - w.began) for w in self.work])


class ServingState:
    """One model on one node, under that node's name for it."""

    def __init__(self, node: NodeState, upstream: str) -> None:
        self.node = node
        self.upstream = upstream
        self.pace = Pace()
        self.read: list[Sequence[Step]] = []
        self.work: set[Work] = set()
        self.slots = 1
        self.answered = 0

    def learn(self, request: ModelRequest, reader: ReplyReader, clock: Clock, work: Work) -> None:
        guess = Tokens(request.prompt_tokens, cached=work.cached)
        self.pace = paces.after(self.pace, timing(reader, clock, guess))
        self.answered += 1
        if self.node.resident is not None:
            self.node.resident.setdefault(self.upstream, 0)
        if request.prompt:
            self.read = prefix.remember(self.read, request.prompt, self.slots)

    def room(self, slots: int, now: float) -> Room:
        return Room(slots, [remaining(w.expected, now - w.began) for w in self.work])

    def outlook(self, request: ModelRequest, peers: Iterable[Pace], now: float) -> NodeOutlook:
        node = self.node
        pace = paces.guessed(self.pace, peers)
        loaded = node.resident is None or self.upstream in node.resident
        return NodeOutlook(
            node.node.name,
            up=node.up,
            why_down=node.breaker.why,
            wait=max(0.0, node.breaker.busy_until - now),
            load=0.0 if loaded else pace.load,
            prefill=pace.prefill,
            decode=pace.decode,
            cached=prefix.cached(self.read, request.prompt),
        )


class World:
    """The fleet as the relay sees it now. A new plan keeps the state of nodes that stay."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.models: dict[str, Model] = {}
        self._servings: dict[tuple[str, str], ServingState] = {}
        self._speeds: Mapping[str, Mapping[str, float]] = {}
        self._outputs: dict[tuple[str, str], float] = {}
        self._last: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    def adopt(self, fleet: Fleet, speeds: Mapping[str, Mapping[str, float]]) -> None:
        self._speeds = speeds
        self.nodes = {name: self._state_of(node) for name, node in fleet.nodes.items()}
        self.models = {}
        for model in fleet.models.values():
            for name in model.names:
                self.models.setdefault(name, model)
        self.models |= dict(fleet.models)
        stays = {id(state) for state in self.nodes.values()}
        self._servings = {k: s for k, s in self._servings.items() if id(s.node) in stays}

    def _state_of(self, node: Node) -> NodeState:
        """The state of a node belongs to its address and kind, and outlives any other change."""
        state = self.nodes.get(node.name)
        if state is None or (state.node.endpoint, state.node.kind) != (node.endpoint, node.kind):
            return NodeState(node)
        state.node = node
        return state

    def state(self, serving: Serving) -> ServingState:
        key = (serving.node.name, serving.upstream)
        if key not in self._servings:
            state = ServingState(self.nodes[serving.node.name], serving.upstream)
            known = self._speeds.get(speed_key(serving.node.endpoint, serving.upstream), {})
            state.pace = Pace(**known)
            self._servings[key] = state
        self._servings[key].slots = serving.slots
        return self._servings[key]

    def candidates(self, request: ModelRequest, tried: set[str]) -> Iterator[Serving]:
        for model in self.chain(request.model):
            servings = [
                s
                for s in model.servings
                if s.node.name not in tried
                and request.wire.speaks(s.node.kind)
                and self.nodes[s.node.name].up
            ]
            if servings:
                yield from servings
                return

    def chain(self, name: str) -> Iterator[Model]:
        """The model, then its fallbacks."""
        seen: set[str] = set()
        waiting = [self.models[name]] if name in self.models else []
        while waiting:
            model = waiting.pop(0)
            if model.name not in seen:
                seen.add(model.name)
                yield model
                waiting += model.fallbacks

    def why_not(self, request: ModelRequest) -> tuple[str, float]:
        """The reason in words, and after how many seconds it is worth trying again."""
        reasons, soonest, now = [], breakers.LAST_PROBE, time.monotonic()
        for model in self.chain(request.model):
            for serving in model.servings:
                breaker = self.nodes[serving.node.name].breaker
                if not request.wire.speaks(serving.node.kind):
                    reasons.append(f"{serving.node.name} does not speak {request.wire.family}")
                elif breaker.state is State.OPEN:
                    soonest = min(soonest, max(0.0, breaker.next_probe - now))
                    reasons.append(f"{serving.node.name} is down ({breaker.why})")
                else:
                    reasons.append(f"{serving.node.name} could not answer it")
        return "; ".join(dict.fromkeys(reasons)) or "no node serves it", soonest

    def options(
        self, request: ModelRequest, servings: list[Serving], rooms: Rooms
    ) -> tuple[Choice, ...]:
        states = [self.state(serving) for serving in servings]
        peers = [state.pace for state in states]
        choices = [
            Choice(state.outlook(request, peers, rooms.now), rooms.place(state, serving.slots))
            for state, serving in zip(states, servings, strict=True)
        ]
        return with_first(
            choices, self._last.get((request.model, request.session, request.agent), "")
        )

    def expected_output(self, request: ModelRequest) -> int:
        usual = self._outputs.get((request.model, request.agent), paces.OUTPUT)
        return int(min(usual, request.most) if request.most > 0 else usual)

    def answered(self, request: ModelRequest, node: str, reader: ReplyReader) -> None:
        key = (request.model, request.session, request.agent)
        self._last[key] = node
        self._last.move_to_end(key)
        if len(self._last) > SESSIONS:
            self._last.popitem(last=False)
        written = tokens(reader.counts).output or reader.pieces
        if written and request.stream:
            role = (request.model, request.agent)
            self._outputs[role] = paces.mean(self._outputs.get(role, 0.0), written)

    def status(self) -> dict[str, Any]:
        now = time.monotonic()
        return {
            name: _node_status(state, self._servings, now) for name, state in self.nodes.items()
        }


class Rooms:
    """The rooms at one moment, shared by all requests that wait."""

    def __init__(self) -> None:
        self.now = time.monotonic()
        self._servings: dict[int, Place] = {}
        self._nodes: dict[int, Room | None] = {}

    def place(self, state: ServingState, slots: int) -> Place:
        if id(state) not in self._servings:
            node = state.node
            if id(node) not in self._nodes:
                self._nodes[id(node)] = node.room(self.now)
            queue = Place(state.room(slots, self.now), self._nodes[id(node)])
            self._servings[id(state)] = queue
        return self._servings[id(state)]


def _node_status(
    state: NodeState, servings: dict[tuple[str, str], ServingState], now: float
) -> dict[str, Any]:
    breaker = state.breaker
    return {
        "kind": state.node.kind,
        "endpoint": state.node.endpoint,
        "breaker": str(breaker.state),
        "why": breaker.why if breaker.state is not State.CLOSED else "",
        "next_probe": max(0.0, round(breaker.next_probe - now, 2)) if not state.up else None,
        "busy": len(state.work),
        "resting": max(0.0, round(breaker.busy_until - now, 2)),
        "resident": state.resident,
        "servings": {
            upstream: {
                "slots": each.slots,
                "busy": len(each.work),
                "answered": each.answered,
                "prefill": round(each.pace.prefill, 1),
                "decode": round(each.pace.decode, 1),
                "load": round(each.pace.load, 2),
            }
            for (name, upstream), each in servings.items()
            if name == state.node.name
        },
    }
