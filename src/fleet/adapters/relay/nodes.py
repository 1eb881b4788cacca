"""What the relay has learned about each node and model from the requests that it forwarded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fleet.adapters.relay import clock
from fleet.adapters.relay.wires import ReplyTimes, timing, unnamed
from fleet.domain.data import NamedTuple
from fleet.domain.nodes import breaker as breakers
from fleet.domain.nodes import prompt_cache as prefix
from fleet.domain.nodes import speed as paces
from fleet.domain.nodes.breaker import Breaker, NodeResult, State
from fleet.domain.nodes.inventory import plain_name
from fleet.domain.nodes.kinds import kind_of
from fleet.domain.nodes.line import UNLIMITED, Room, remaining
from fleet.domain.nodes.occupancy import Strangers, page_of
from fleet.domain.nodes.patience import first_byte_limit
from fleet.domain.nodes.route import NodeOutlook
from fleet.domain.nodes.speed import Pace
from fleet.domain.nodes.trace import TokenCounts

if TYPE_CHECKING:
    import asyncio

    from fleet.adapters.relay.request import ModelRequest
    from fleet.adapters.relay.wires import ReplyReader
    from fleet.domain.fleet import Node
    from fleet.domain.nodes.prompt_cache import KeptPrompt
    from fleet.domain.nodes.route import Estimate

# Results that concern one model; all others concern the whole node.
OF_THE_MODEL = {NodeResult.FAILED, NodeResult.SILENT, NodeResult.UNFIT}


class OtherServings(NamedTuple):
    """What an estimate for one serving needs to know about the others."""

    peers: list[Pace]  # of all servings that may answer the request
    waiting: int  # requests for this model that wait: they share the time that loading takes
    spare: bool  # whether a serving has a slot that caches no other conversation
    now: float


class NodeWork:
    """A request that a node is working on."""

    def __init__(self, serving: ServingState, estimate: Estimate, request: ModelRequest) -> None:
        self.serving = serving
        self.agent = request.party
        self.cached = estimate.cached
        self.expected = estimate.total - estimate.wait
        writing = 0.0 if request.stream else estimate.decode
        self.limit = first_byte_limit(
            serving.full_load() + estimate.prefill + writing,
            measured=serving.answered > 0 and (request.stream or serving.pace.decode > 0),
            reread=estimate.reread,
        )
        self.began = clock.now()
        self.heard = self.began  # when the last byte came from the node
        self.timeout: asyncio.Timeout | None = None  # aborts the request
        self._crowd = serving.node.crowd

    def begin(self) -> None:
        self.serving.node.count()
        self.serving.work.add(self)
        self.serving.node.work.add(self)
        self.serving.node.expect(self.serving.name)
        self._crowd = self.serving.node.crowd

    def end(self) -> None:
        self.serving.node.count()
        self.serving.work.discard(self)
        self.serving.node.work.discard(self)

    def beside(self) -> float:
        """How many other requests the node was working on meanwhile, on average."""
        self.serving.node.count()
        elapsed = clock.now() - self.began
        return max(0.0, (self.serving.node.crowd - self._crowd) / elapsed - 1) if elapsed else 0.0

    def abort(self, now: float) -> None:
        if self.timeout is not None:
            self.timeout.reschedule(now)


class NodeState:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.breaker = Breaker()
        self.resident: dict[str, int] | None = None  # by plain name; None: unknown, or not Ollama
        self.rivals: set[frozenset[str]] = set()  # pairs of models that were never loaded together
        self.work: set[NodeWork] = set()
        self.misses = 0
        self.looked = 0.0
        self.looking = False
        self.restock = False  # whether to look at the loaded models again, as one was added
        self.crowd = 0.0  # requests at work, summed over the seconds
        self.strangers = Strangers()
        self.usual = 0.0  # seconds that a request takes there on average; 0: not known yet
        self.counting = False
        self.counted_at = 0.0  # when we last looked who else is at work
        self._counted = clock.now()

    def count(self) -> None:
        now = clock.now()
        self.crowd += len(self.work) * (now - self._counted)
        self._counted = now

    def note(self, result: NodeResult, why: str = "", rest: float = 0.0) -> None:
        now = clock.now()
        self.breaker = breakers.after(self.breaker, result, now=now, why=why, rest=rest)

    def saw_resident(self, models: dict[str, int]) -> None:
        """Note the loaded models; a model that is gone is a rival of all that are there now."""
        known = self.resident or {}
        for gone in known.keys() - models.keys():
            self.rivals |= {frozenset({gone, there}) for there in models}
        self.resident = models

    def expect(self, name: str, context: int = 0) -> None:
        """Count a model as loaded and its rivals as evicted, until the next look at the node."""
        if self.resident is None or name in self.resident:
            return
        gone = {other for pair in self.rivals if name in pair for other in pair}
        self.resident = {n: c for n, c in self.resident.items() if n not in gone} | {name: context}
        self.restock = True

    @property
    def up(self) -> bool:
        return self.breaker.state is not State.OPEN

    def room(self, now: float) -> Room:
        slots = breakers.allowed(self.breaker, self.node.max_parallel or UNLIMITED, now)
        return Room(slots, self.remaining(now))

    def remaining(self, now: float) -> list[float]:
        """How long each of our requests at work will still take."""
        return [remaining(w.expected, now - w.began) for w in self.work]

    def learn(self, took: float, queue: float, *, alone: bool) -> None:
        """Learn from a reply that took so long.

        `queue`: seconds of it that the node's figures do not explain; `alone`: no other request of
        ours was there.
        """
        self.usual = paces.mean(self.usual, took)
        if alone and not page_of(kind_of(self.node.kind).pages):
            self.strangers = self.strangers.queued(queue, clock.now())


class ServingState:
    """One model on one node, under that node's name for it."""

    def __init__(self, node: NodeState, upstream: str) -> None:
        self.node = node
        self.upstream = upstream
        self.breaker = breakers.of_model()
        self.pace = Pace()
        self.kept: list[KeptPrompt] = []
        self.work: set[NodeWork] = set()
        self.slots = 1
        self.answered = 0
        self.was_resident = False
        self.loading = 0.0  # when the relay began to load it; 0: it is not being loaded

    @property
    def name(self) -> str:
        return plain_name(self.upstream)

    @property
    def up(self) -> bool:
        return self.node.up and self.breaker.state is not State.OPEN

    @property
    def resident(self) -> bool:
        """Whether the model is in memory, as assumed of nodes that do not tell."""
        return self.node.resident is None or self.name in self.node.resident

    def note(self, result: NodeResult, why: str = "", rest: float = 0.0) -> None:
        """Note a result for the model or, if it concerns the connection, for the node."""
        now = clock.now()
        if result in OF_THE_MODEL or result is NodeResult.GOOD:
            self.breaker = breakers.after(self.breaker, result, now=now, why=why)
        if result not in OF_THE_MODEL:
            self.node.note(result, why, rest)

    def learn(
        self, request: ModelRequest, reader: ReplyReader, took: ReplyTimes, work: NodeWork
    ) -> None:
        guess = TokenCounts(request.prompt_tokens, cached=work.cached)
        measured = replace(timing(reader, took, guess), beside=work.beside())
        self.pace = paces.after(self.pace, measured)
        alone = measured.beside < paces.ALONE
        self.node.learn(clock.now() - work.began, unnamed(measured, took), alone=alone)
        self.answered += 1
        self.loaded(0)
        self.node.restock |= measured.loading >= paces.SHORTEST_LOAD

    def loaded(self, context: int) -> None:
        self.was_resident = True
        self.node.expect(self.name, context)

    def saw(self, *, loaded: bool) -> None:
        """Note whether the node says that the model is loaded."""
        self.was_resident |= loaded
        if not loaded:
            self.forget()

    def remember(self, request: ModelRequest) -> None:
        """Note that a slot of the serving caches this prompt now."""
        if request.prompt:
            self.kept = prefix.remember(
                self.kept, request.owner, request.prompt, self.slots, clock.now()
            )

    def forget(self, owner: str = "") -> None:
        self.kept = [each for each in self.kept if owner and each.owner != owner]

    def room(self, slots: int, now: float) -> Room:
        slots = breakers.allowed(self.breaker, slots, now)
        return Room(slots, [remaining(w.expected, now - w.began) for w in self.work])

    def full_load(self) -> float:
        """Return the seconds of loading that a request would wait for if it came now."""
        if self.resident:
            return 0.0
        load = self.pace.load or paces.LOAD
        return max(0.0, load - (clock.now() - self.loading)) if self.loading else load

    def has_room_for(self, request: ModelRequest) -> bool:
        return prefix.has_room(self.kept, request.owner, request.prompt, self.slots)

    def outlook(self, request: ModelRequest, around: OtherServings) -> NodeOutlook:
        node = self.node
        drag = kind_of(node.node.kind).drag
        pace = paces.guessed(self.pace, around.peers, drag=drag, new=not self.answered)
        load = self.full_load()
        return NodeOutlook(
            node.node.name,
            up=self.up,
            why_down=node.breaker.why or self.breaker.why,
            wait=max(0.0, node.breaker.busy_until - around.now)
            + node.strangers.wait(node.remaining(around.now), node.usual, around.now),
            load=load if self.loading else load / max(1, around.waiting),
            prefill=pace.prefill,
            decode=pace.decode,
            cached=prefix.cached(self.kept, request.prompt),
            evicted=prefix.evicted(
                self.kept,
                request.owner,
                request.prompt,
                self.slots,
                around.now,
                spare=around.spare,
            ),
            drag=pace.drag if pace.drag is not None else drag,
            beside=node.strangers.beside,
            weight=node.node.weight,
        )


def node_status(state: NodeState, servings: list[ServingState], now: float) -> dict[str, Any]:
    """Return a node's status; it is shut off when all of its models are."""
    shut = [each for each in servings if each.breaker.state is State.OPEN]
    breaker = shut[0].breaker if shut and len(shut) == len(servings) else state.breaker
    breaker = breaker if state.up else state.breaker
    opened = breaker.state is State.OPEN
    rests = max(0.0, round(state.breaker.busy_until - now, 2))
    resting_why = state.breaker.busy_why if rests else ""
    return {
        "kind": state.node.kind,
        "endpoint": state.node.endpoint,
        "breaker": str(breaker.state),
        "why": breaker.why if breaker.state is not State.CLOSED else resting_why,
        "next_probe": max(0.0, round(breaker.next_probe - now, 2)) if opened else None,
        "busy": len(state.work),
        "others": len(state.strangers.since),
        "looked": state.looked > 0,
        "resting": rests,
        "resident": state.resident,
        "servings": {each.upstream: _serving_status(each, now) for each in servings},
    }


def _serving_status(state: ServingState, now: float) -> dict[str, Any]:
    opened = state.breaker.state is State.OPEN
    return {
        "slots": state.slots,
        "busy": len(state.work),
        "answered": state.answered,
        "prefill": round(state.pace.prefill, 1),
        "decode": round(state.pace.decode, 1),
        "load": round(state.pace.load, 2),
        "drag": None if state.pace.drag is None else round(state.pace.drag, 2),
        "breaker": str(state.breaker.state),
        "why": state.breaker.why if state.breaker.state is not State.CLOSED else "",
        "next_probe": max(0.0, round(state.breaker.next_probe - now, 2)) if opened else None,
        "loading": state.loading > 0,
    }
