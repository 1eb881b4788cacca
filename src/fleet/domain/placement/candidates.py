"""The machines, models and agents that a recommendation is about, and what it has come to so far."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.nodes.benchmark import seconds
from fleet.domain.nodes.speed import Pace
from fleet.domain.roles import KIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PROMPT, OUTPUT = 4000, 400  # tokens of one turn of a coding agent, about
BETTER = 0.85  # a change must be 15 % better
WORTH = -log(BETTER)
UNKNOWN = log(2.0)  # what a place that nobody measured is taken to cost, against the present one
SHORTEST = 4096  # tokens of context; with fewer a coding agent can do nothing
BREADTH = 500  # placements that are kept while looking for the best; 10 by 10 is too many
# How much an agent gains by a model that is larger, and by one that is faster.
WEIGHTS = {
    "implementer": (1.0, 0.5),
    "reviewer": (1.0, 0.5),
    "tester": (0.75, 0.5),
    "planner": (0.25, 1.0),
    "summarizer": (0.1, 1.0),
    "documenter": (0.4, 0.75),
}
OTHER = (0.5, 0.5)


class Machine(NamedTuple):
    """`up`: it answered. `loads`: it fetches and loads what it is told to, as Ollama does."""

    name: str
    memory: int = 0  # bytes that models may fill; 0: unknown
    up: bool = True
    loads: bool = True
    wire: str = "ollama"


class Spot(NamedTuple):
    """One model on one node, as it is or might be. `guessed`: from another model's speed there."""

    pace: Pace = Pace()
    held: bool = False  # the node has it on its disk
    guessed: bool = False

    @property
    def seconds(self) -> float:
        return seconds(self.pace, PROMPT, OUTPUT)


class Stock(NamedTuple):
    """A model. `keys`: its entries in the file, one for each node, unless it has `servings`.

    `fixed`: it is declared elsewhere than in the file that would be written.
    """

    name: str
    nodes: tuple[str, ...]  # that serve it, best first
    keys: tuple[str, ...]
    upstream: str
    alias: str
    context: int
    spots: Mapping[str, Spot]
    needs: Callable[[int], int] | None = None  # bytes with so much context; None: unknown
    billions: float = 0.0  # of parameters; 0: unknown
    tools: bool | None = None
    fallbacks: tuple[str, ...] = ()
    rest: tuple[tuple[str, Any], ...] = ()  # what a second entry has to say as well
    fixed: bool = False

    @property
    def movable(self) -> bool:
        return len(self.nodes) == len(self.keys) == 1

    def need(self, context: int = 0) -> int:
        return self.needs(context or self.context) if self.needs else 0


class Wish(NamedTuple):
    """An agent. `least`: the context that its program needs."""

    agent: str
    model: str
    tools: bool = True
    least: int = 0

    @property
    def role(self) -> str:
        words = self.agent.replace("_", "-").split("-")
        found = (KIN.get(word, word) for word in words)
        return next((word for word in found if word in WEIGHTS), "")

    @property
    def weights(self) -> tuple[float, float]:
        return WEIGHTS.get(self.role, OTHER)


class Line(NamedTuple):
    """One value of fleet.yaml, what it was (None: nothing), and the reason."""

    path: tuple[str, ...]
    value: Any
    was: Any
    why: str


class Seat(NamedTuple):
    """Where an agent's requests will go; `seconds` of a turn there, 0 when not known."""

    agent: str
    model: str
    nodes: tuple[str, ...]
    seconds: float


class Filling(NamedTuple):
    """What will stand on a node, and the bytes that it needs; zero is unknown."""

    node: str
    memory: int
    needed: int
    models: tuple[str, ...]


class Advice(NamedTuple):
    lines: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()
    seats: tuple[Seat, ...] = ()
    fillings: tuple[Filling, ...] = ()


class Draft:
    """What has been decided so far."""

    def __init__(
        self, machines: Mapping[str, Machine], models: Sequence[Stock], wishes: Sequence[Wish]
    ) -> None:
        self.machines, self.wishes = machines, wishes
        self.models = {model.name: model for model in models}
        self.nodes = {model.name: model.nodes for model in models}
        self.contexts = {model.name: model.context for model in models}
        self.uses = {wish.agent: wish.model for wish in wishes}
        self.hopeless: set[str] = set()  # models that fit nowhere, with whatever context
        self.lines: list[Line] = []
        self.notes: list[str] = []

    def demand(self, name: str) -> float:
        """How much speed matters to those that use it now."""
        return 0.1 + sum(w.weights[1] for w in self.wishes if self.uses[w.agent] == name)

    def need(self, name: str) -> int:
        """Bytes with its context; 0 when that is not known, or of no use."""
        return 0 if name in self.hopeless else self.models[name].need(self.contexts[name])

    def used(self, node: str) -> int:
        return sum(self.need(name) for name, nodes in self.nodes.items() if node in nodes)

    def best(self, name: str) -> str:
        """The node that answers soonest, as far as it is measured: where the relay would ask."""
        spots = {node: self.models[name].spots.get(node, Spot()) for node in self.nodes[name]}
        return min(spots, key=lambda n: (spots[n].guessed, spots[n].seconds or float("inf")))

    def took(self, name: str) -> float:
        """Seconds of a turn with it there; 0: not known."""
        return self.models[name].spots.get(self.best(name), Spot()).seconds


def room(machine: Machine) -> str:
    if not machine.memory:
        return f"{machine.name} has it already (how much memory it has is not known)"
    return f"{machine.name} has room for it ({gigabytes(machine.memory)})"


def pull(model: Stock, node: str) -> str:
    if model.spots.get(node, Spot()).held:
        return ""
    return f" It has to be fetched: `ollama pull {model.upstream}` there."


def span(model: Stock, node: str) -> str:
    spot = model.spots.get(node, Spot())
    if not spot.seconds:
        return "a time that nobody measured"
    return f"{'about ' * spot.guessed}{spot.seconds:.3g} s"


def gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GB"


def listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
