"""The fleet as the relay sees it now: which servings may answer a request, and why none may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.relay import clock
from fleet.adapters.relay.nodes import NodeState, OtherServings, ServingState, node_status
from fleet.adapters.relay.plan import speed_key
from fleet.adapters.relay.recent import Recent
from fleet.adapters.relay.wires import tokens
from fleet.domain.data import NamedTuple
from fleet.domain.nodes import breaker as breakers
from fleet.domain.nodes import speed as paces
from fleet.domain.nodes.breaker import State
from fleet.domain.nodes.kinds import costs_money
from fleet.domain.nodes.line import Room, ServingChoice, ServingRoom, with_first
from fleet.domain.nodes.speed import Pace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fleet.adapters.relay.request import ModelRequest
    from fleet.adapters.relay.wires import ReplyReader
    from fleet.domain.fleet import Fleet, Model, Node, Serving

NOBODY = "it has no node whose address is trusted: see `fleet trust --show`"
LONG_REST = 2.0  # seconds; while all nodes of a model rest for longer, its fallbacks answer, too


class WhyNot(NamedTuple):
    """Why no node can answer, and after how many seconds the client may try again."""

    words: str
    after: float
    too_long: bool = False  # the prompt does not fit into any node's context


class RelayWorld:
    """The nodes and models of the current plan; a new plan keeps the state of remaining nodes."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.models: dict[str, Model] = {}
        self._servings: dict[tuple[str, str], ServingState] = {}
        self._speeds: Mapping[str, Mapping[str, float]] = {}
        self._outputs = Recent[tuple[str, str], float]()  # of an agent's replies, on average
        self._last = Recent[tuple[str, str], str]()  # the node of a conversation
        self._last_asked: dict[str, float] = {}  # by model

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
        """Return a node's state, a new one only when its address or kind has changed."""
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

    def servings(self) -> Iterator[tuple[Model, Serving, ServingState]]:
        """All that the plan declares."""
        for model in {id(model): model for model in self.models.values()}.values():
            for serving in model.servings:
                yield model, serving, self.state(serving)

    def candidates(self, request: ModelRequest, tried: set[str]) -> Iterator[Serving]:
        """The servings of the first model of the chain that has any.

        While all of those rest, the next model's come as well.
        """
        now = clock.now()
        for model in self.chain(request.model):
            servings = [
                s
                for s in model.servings
                if s.node.name not in tried
                and request.wire.speaks(s.node.kind)
                and self.state(s).up
                and request.fits(s.context)
            ]
            yield from servings
            if any(self._rest(serving, now) <= LONG_REST for serving in servings):
                return

    def _rest(self, serving: Serving, now: float) -> float:
        return self.nodes[serving.node.name].breaker.busy_until - now

    def why_resting(self, request: ModelRequest) -> str:
        """Return why the request waits, if all nodes that could answer have asked for a pause."""
        now, servings = clock.now(), list(self.candidates(request, set()))
        if any(self._rest(serving, now) <= 0 for serving in servings):
            return ""
        nodes = {s.node.name: self.nodes[s.node.name].breaker.busy_why for s in servings}
        return "; ".join(f"{name} rests: {why}" for name, why in nodes.items())

    def chain(self, name: str) -> tuple[Model, ...]:
        """The model, then its fallbacks; nothing when a new plan no longer has it."""
        return self.models[name].chain if name in self.models else ()

    def name_of(self, name: str) -> str:
        """The model's own name, for any of its names."""
        return self.models[name].name if name in self.models else name

    def note_asked(self, request: ModelRequest) -> None:
        self._last_asked[self.name_of(request.model)] = clock.now()

    def since_asked(self, model: Model) -> float:
        return clock.now() - self._last_asked.get(model.name, float("-inf"))

    def since_any_asked(self) -> float:
        return clock.now() - max(self._last_asked.values(), default=float("-inf"))

    def rest_same_key(self, node: Node) -> None:
        """Let all nodes with this node's key rest as long as it does, as they share its quota."""
        same = [s for s in self.nodes.values() if node.api_key and s.node.api_key == node.api_key]
        until = max((state.breaker.busy_until for state in same), default=0.0)
        for state in same:
            state.breaker = breakers.resting(state.breaker, until)

    def paid(self) -> set[str]:
        """Return the names of the nodes that cost money."""
        return {name for name, state in self.nodes.items() if costs_money(state.node)}

    def why_not(self, request: ModelRequest) -> WhyNot:
        reasons, soonest, now = [], breakers.LAST_PROBE, clock.now()
        fits = False
        for model in self.chain(request.model):
            for serving in model.servings:
                fits |= request.fits(serving.context)
                reasons.append(self._reason(request, serving))
                breaker = self.nodes[serving.node.name].breaker
                if breaker.state is State.OPEN:
                    soonest = min(soonest, max(0.0, breaker.next_probe - now))
        gone = f"fleet.yaml no longer has the model '{request.model}'"
        nobody = NOBODY if request.model in self.models else gone
        words = "; ".join(dict.fromkeys(reasons)) or nobody
        return WhyNot(words, soonest, too_long=bool(reasons) and not fits)

    def _reason(self, request: ModelRequest, serving: Serving) -> str:
        state, name = self.state(serving), serving.node.name
        if not request.wire.speaks(serving.node.kind):
            return f"{name} does not speak {request.wire.family}"
        if not state.node.up:
            return f"{name} is down ({state.node.breaker.why})"
        if not state.up:
            return f"{serving.upstream} on {name} is shut off ({state.breaker.why})"
        if not request.fits(serving.context):
            return f"{name} holds {serving.context} tokens, the prompt has {request.text_tokens}"
        return f"{name} could not answer it"

    def options(
        self, request: ModelRequest, servings: list[Serving], rooms: Rooms
    ) -> tuple[ServingChoice, ...]:
        states = [self.state(serving) for serving in servings]
        around = OtherServings(
            peers=[state.pace for state in states],
            waiting=rooms.waiting.get(self.name_of(request.model), 1),
            spare=any(state.resident and state.has_room_for(request) for state in states),
            now=rooms.now,
        )
        choices = [
            ServingChoice(state.outlook(request, around), rooms.room_of(state, serving.slots))
            for state, serving in zip(states, servings, strict=True)
        ]
        return with_first(choices, self._last.get((request.model, request.owner), ""))

    def expected_output(self, request: ModelRequest) -> int:
        usual = self._outputs.get((request.model, request.agent), paces.OUTPUT)
        return int(min(usual, request.most) if request.most > 0 else usual)

    def answered(self, request: ModelRequest, node: str, reader: ReplyReader) -> None:
        self._last.note((request.model, request.owner), node)
        written = tokens(reader.counts).output or reader.pieces
        if written:
            role = (request.model, request.agent)
            self._outputs.note(role, paces.mean(self._outputs.get(role, 0.0), written))

    def status(self) -> dict[str, Any]:
        now = clock.now()
        return {
            name: node_status(state, [s for s in self._servings.values() if s.node is state], now)
            for name, state in self.nodes.items()
        }


class Rooms:
    """The free slots at one moment. `waiting`: how many requests wait, by model."""

    def __init__(self, waiting: Mapping[str, int]) -> None:
        self.now = clock.now()
        self.waiting = waiting
        self._servings: dict[int, ServingRoom] = {}
        self._nodes: dict[int, Room] = {}

    def room_of(self, state: ServingState, slots: int) -> ServingRoom:
        if id(state) not in self._servings:
            node = state.node
            if id(node) not in self._nodes:
                self._nodes[id(node)] = node.room(self.now)
            there = ServingRoom(state.room(slots, self.now), self._nodes[id(node)])
            self._servings[id(state)] = there
        return self._servings[id(state)]


def at_work(nodes: Iterable[NodeState]) -> dict[str, int]:
    """Count, by agent, the requests that nodes are working on."""
    counts: dict[str, int] = {}
    for node in nodes:
        for work in node.work:
            counts[work.agent] = counts.get(work.agent, 0) + 1
    return counts
