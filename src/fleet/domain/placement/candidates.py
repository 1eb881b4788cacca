"""The machines, models and agents of a recommendation, and what it has decided so far."""

from __future__ import annotations

from math import log
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.evals.case import JOBS, JOBS_OF, role_of
from fleet.domain.nodes.benchmark import seconds
from fleet.domain.nodes.speed import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PROMPT, OUTPUT = 4000, 400  # tokens of one turn of a coding agent, about
BETTER = 0.85  # a change must be 15 % better
WORTH = -log(BETTER)
UNKNOWN = log(2.0)  # assumed cost of an unmeasured node, compared with the present one
SHORTEST = 4096  # tokens of context; with fewer a coding agent cannot work
BREADTH = 500  # placements kept during the search: 10 models on 10 nodes have too many
# How much an agent gains from a larger model, and from a faster one.
WEIGHTS = {
    "implementer": (1.0, 0.5),
    "reviewer": (1.0, 0.5),
    "tester": (0.75, 0.5),
    "planner": (0.25, 1.0),
    "summarizer": (0.1, 1.0),
    "documenter": (0.4, 0.75),
}
OTHER = (0.5, 0.5)
SCORED = 3.0  # doing a job twice as well counts as much as three doublings of the size
WORST = 0.05  # a score that counts as zero


class CandidateNode(NamedTuple):
    """A machine. `up`: it answered. `loads`: it pulls and loads models on request, as Ollama does."""

    name: str
    memory: int = 0  # bytes that models may use; 0: unknown
    up: bool = True
    loads: bool = True
    wire: str = "ollama"


class ModelOnNode(NamedTuple):
    """One model on one node, now or possibly. `guessed`: estimated from another model's speed."""

    pace: Pace = Pace()
    held: bool = False  # the node has it on its disk
    guessed: bool = False

    @property
    def seconds(self) -> float:
        return seconds(self.pace, PROMPT, OUTPUT)


class Stock(NamedTuple):
    """A model. `keys`: its entries in fleet.yaml, one for each node, unless it has `servings`.

    `quality`: by job, its score in `fleet eval` from 0 to 1; jobs that were not tested are missing.
    `fixed`: it is declared in a file that a recommendation does not change.
    """

    name: str
    nodes: tuple[str, ...]  # that serve it, best first
    keys: tuple[str, ...]
    upstream: str
    alias: str
    context: int
    spots: Mapping[str, ModelOnNode]
    needs: Callable[[int], int] | None = None  # bytes for a given context; None: unknown
    billions: float = 0.0  # of parameters; 0: unknown
    tools: bool | None = None
    fallbacks: tuple[str, ...] = ()
    rest: tuple[tuple[str, Any], ...] = ()  # its other settings, which a second entry needs too
    fixed: bool = False
    quality: Mapping[str, float] = MappingProxyType({})

    @property
    def movable(self) -> bool:
        return len(self.nodes) == len(self.keys) == 1

    def need(self, context: int = 0) -> int:
        return self.needs(context or self.context) if self.needs else 0

    def quality_at(self, jobs: Sequence[str]) -> float | None:
        """The mean score of these jobs; None unless all of them were tested."""
        if not all(job in self.quality for job in jobs):
            return None
        return sum(self.quality[job] for job in jobs) / len(jobs)


class AgentWish(NamedTuple):
    """An agent. `least`: the context that its program needs."""

    agent: str
    model: str
    tools: bool = True
    least: int = 0

    @property
    def role(self) -> str:
        return role_of(self.agent)

    @property
    def jobs(self) -> tuple[str, ...]:
        return JOBS_OF.get(self.role, JOBS)

    @property
    def weights(self) -> tuple[float, float]:
        return WEIGHTS.get(self.role, OTHER)


class SettingChange(NamedTuple):
    """A change of one value in fleet.yaml: the new value, the old one (None: not set), and why."""

    path: tuple[str, ...]
    value: Any
    was: Any
    why: str


class AgentPlacement(NamedTuple):
    """Where an agent's requests will go. `seconds`: what a turn takes there; 0: unknown."""

    agent: str
    model: str
    nodes: tuple[str, ...]
    seconds: float
    quality: float | None = None  # the mean score of its jobs; None: not all of them were tested


class Filling(NamedTuple):
    """The models that will be on a node, and the bytes that they need; zero is unknown."""

    node: str
    memory: int
    needed: int
    models: tuple[str, ...]


class Advice(NamedTuple):
    lines: tuple[SettingChange, ...] = ()
    notes: tuple[str, ...] = ()
    seats: tuple[AgentPlacement, ...] = ()
    fillings: tuple[Filling, ...] = ()


class PlacementDraft:
    """What has been decided so far."""

    def __init__(
        self,
        machines: Mapping[str, CandidateNode],
        models: Sequence[Stock],
        wishes: Sequence[AgentWish],
    ) -> None:
        self.machines, self.wishes = machines, wishes
        self.models = {model.name: model for model in models}
        self.nodes = {model.name: model.nodes for model in models}
        self.contexts = {model.name: model.context for model in models}
        self.uses = {wish.agent: wish.model for wish in wishes}
        self.hopeless: set[str] = set()  # models that fit nowhere, with whatever context
        self.lines: list[SettingChange] = []
        self.notes: list[str] = []

    def demand(self, name: str) -> float:
        """How much speed matters to the agents that use it now."""
        return 0.1 + sum(w.weights[1] for w in self.wishes if self.uses[w.agent] == name)

    def need(self, name: str) -> int:
        """Bytes that it needs with its context; 0: unknown, or it fits nowhere."""
        return 0 if name in self.hopeless else self.models[name].need(self.contexts[name])

    def used(self, node: str) -> int:
        return sum(self.need(name) for name, nodes in self.nodes.items() if node in nodes)

    def best(self, name: str) -> str:
        """The node that answers soonest by its measurements, which the relay would choose."""
        spots = {
            node: self.models[name].spots.get(node, ModelOnNode()) for node in self.nodes[name]
        }
        return min(spots, key=lambda n: (spots[n].guessed, spots[n].seconds or float("inf")))

    def took(self, name: str) -> float:
        """Seconds that a turn takes on its best node; 0: unknown."""
        return self.models[name].spots.get(self.best(name), ModelOnNode()).seconds


def room(machine: CandidateNode) -> str:
    if not machine.memory:
        return f"{machine.name} has it already (how much memory it has is not known)"
    return f"{machine.name} has room for it ({gigabytes(machine.memory)})"


def pull(model: Stock, node: str) -> str:
    if model.spots.get(node, ModelOnNode()).held:
        return ""
    return f" It has to be fetched: `ollama pull {model.upstream}` there."


def span(model: Stock, node: str) -> str:
    spot = model.spots.get(node, ModelOnNode())
    if not spot.seconds:
        return "a time that was not measured"
    return f"{'about ' * spot.guessed}{spot.seconds:.3g} s"


def gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GB"


def listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
