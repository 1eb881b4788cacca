"""What the relay knows of each node and serving, from what passed through it."""

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

    from fleet.adapters.relay.request import Asked
    from fleet.adapters.relay.wires import Ear
    from fleet.domain.fleet import Fleet, Model, Node, Serving
    from fleet.domain.nodes.prompt_cache import Step

SESSIONS = 4096  # whose last node is remembered


class Work:
    """A request that a node is at work on."""

    def __init__(self, serving: ServingState, expected: float, cached: int) -> None:
        self.serving = serving
        self.cached = cached
        self.expected = expected
        self.began = time.monotonic()
        self.heard = self.began  # when the node last said something
        self.lever: asyncio.Timeout | None = None  # ends the talk with the node

    def abort(self, now: float) -> None:
        if self.lever is not None:
            self.lever.reschedule(now)


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

    def learn(self, asked: Asked, ear: Ear, clock: Clock, work: Work) -> None:
        guess = Tokens(asked.prompt_tokens, cached=work.cached)
        self.pace = paces.after(self.pace, timing(ear, clock, guess))
        self.answered += 1
        if self.node.resident is not None:
            self.node.resident.setdefault(self.upstream, 0)
        if asked.prompt:
            self.read = prefix.remember(self.read, asked.prompt, self.slots)

    def room(self, slots: int, now: float) -> Room:
        return Room(slots, [remaining(w.expected, now - w.began) for w in self.work])

    def outlook(self, asked: Asked, peers: Iterable[Pace], now: float) -> NodeOutlook:
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
            cached=prefix.cached(self.read, asked.prompt),
        )


class World:
    """The fleet as the relay sees it now. A new plan keeps what is known of nodes that stay."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.models: dict[str, Model] = {}
        self._servings: dict[tuple[str, str], ServingState] = {}
        self._speeds: Mapping[str, Mapping[str, float]] = {}
        self._outputs: dict[tuple[str, str], float] = {}
        self._last: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    def adopt(self, fleet: Fleet, speeds: Mapping[str, Mapping[str, float]]) -> None:
        self._speeds = speeds
        self.nodes = {name: self._stays(node) for name, node in fleet.nodes.items()}
        self.models = {}
        for model in fleet.models.values():
            for name in model.names:
                self.models.setdefault(name, model)
        self.models |= dict(fleet.models)
        stays = {id(state) for state in self.nodes.values()}
        self._servings = {k: s for k, s in self._servings.items() if id(s.node) in stays}

    def _stays(self, node: Node) -> NodeState:
        """What it is at work on, and what is known of it, is of its address: whatever else changed."""
        held = self.nodes.get(node.name)
        if held is None or (held.node.endpoint, held.node.kind) != (node.endpoint, node.kind):
            return NodeState(node)
        held.node = node
        return held

    def state(self, serving: Serving) -> ServingState:
        key = (serving.node.name, serving.upstream)
        if key not in self._servings:
            state = ServingState(self.nodes[serving.node.name], serving.upstream)
            known = self._speeds.get(speed_key(serving.node.endpoint, serving.upstream), {})
            state.pace = Pace(**known)
            self._servings[key] = state
        self._servings[key].slots = serving.slots
        return self._servings[key]

    def candidates(self, asked: Asked, tried: set[str]) -> Iterator[Serving]:
        for model in self.chain(asked.model):
            found = [
                s
                for s in model.servings
                if s.node.name not in tried
                and asked.wire.speaks(s.node.kind)
                and self.nodes[s.node.name].up
            ]
            if found:
                yield from found
                return

    def chain(self, name: str) -> Iterator[Model]:
        """The model, then those that answer in its place."""
        seen: set[str] = set()
        waiting = [self.models[name]] if name in self.models else []
        while waiting:
            model = waiting.pop(0)
            if model.name not in seen:
                seen.add(model.name)
                yield model
                waiting += model.fallbacks

    def why_not(self, asked: Asked) -> tuple[str, float]:
        """In a sentence, and after how many seconds it is worth asking again."""
        reasons, soonest, now = [], breakers.LAST_PROBE, time.monotonic()
        for model in self.chain(asked.model):
            for serving in model.servings:
                held = self.nodes[serving.node.name].breaker
                if not asked.wire.speaks(serving.node.kind):
                    reasons.append(f"{serving.node.name} does not speak {asked.wire.family}")
                elif held.state is State.OPEN:
                    soonest = min(soonest, max(0.0, held.next_probe - now))
                    reasons.append(f"{serving.node.name} is down ({held.why})")
                else:
                    reasons.append(f"{serving.node.name} could not answer it")
        return "; ".join(dict.fromkeys(reasons)) or "no node serves it", soonest

    def options(self, asked: Asked, servings: list[Serving], rooms: Rooms) -> tuple[Choice, ...]:
        states = [self.state(serving) for serving in servings]
        peers = [state.pace for state in states]
        found = [
            Choice(state.outlook(asked, peers, rooms.now), rooms.place(state, serving.slots))
            for state, serving in zip(states, servings, strict=True)
        ]
        return with_first(found, self._last.get((asked.model, asked.session, asked.agent), ""))

    def expected_output(self, asked: Asked) -> int:
        usual = self._outputs.get((asked.model, asked.agent), paces.OUTPUT)
        return int(min(usual, asked.most) if asked.most > 0 else usual)

    def answered(self, asked: Asked, node: str, ear: Ear) -> None:
        key = (asked.model, asked.session, asked.agent)
        self._last[key] = node
        self._last.move_to_end(key)
        if len(self._last) > SESSIONS:
            self._last.popitem(last=False)
        written = tokens(ear.counts).output or ear.pieces
        if written and asked.stream:
            role = (asked.model, asked.agent)
            self._outputs[role] = paces.mean(self._outputs.get(role, 0.0), written)

    def shown(self) -> dict[str, Any]:
        now = time.monotonic()
        return {name: _shown(state, self._servings, now) for name, state in self.nodes.items()}


class Rooms:
    """Rooms as they are at one moment, shared by all who wait."""

    def __init__(self) -> None:
        self.now = time.monotonic()
        self._servings: dict[int, Place] = {}
        self._nodes: dict[int, Room | None] = {}

    def place(self, state: ServingState, slots: int) -> Place:
        if id(state) not in self._servings:
            node = state.node
            if id(node) not in self._nodes:
                self._nodes[id(node)] = node.room(self.now)
            place = Place(state.room(slots, self.now), self._nodes[id(node)])
            self._servings[id(state)] = place
        return self._servings[id(state)]


def _shown(
    state: NodeState, servings: dict[tuple[str, str], ServingState], now: float
) -> dict[str, Any]:
    held = state.breaker
    return {
        "kind": state.node.kind,
        "endpoint": state.node.endpoint,
        "breaker": str(held.state),
        "why": held.why if held.state is not State.CLOSED else "",
        "next_probe": max(0.0, round(held.next_probe - now, 2)) if not state.up else None,
        "busy": len(state.work),
        "resting": max(0.0, round(held.busy_until - now, 2)),
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
