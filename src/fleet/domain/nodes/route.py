"""Which of the nodes that serve a model would answer a request soonest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import dataclass
from fleet.domain.nodes.speed import slowdown

if TYPE_CHECKING:
    from collections.abc import Sequence

HYSTERESIS = 0.85  # a later node must be 15 % faster to win over an earlier one


@dataclass(frozen=True, slots=True)
class NodeOutlook:
    """What is known now of one node that serves the model; speeds in tokens per second."""

    node: str
    up: bool | None = True  # None: unknown, which is not down
    why_down: str = ""
    wait: float = 0.0  # seconds of work before a slot is free
    load: float = 0.0  # seconds until the model is resident
    prefill: float = 0.0
    decode: float = 0.0
    cached: int = 0  # tokens of this prompt that the node already holds
    evicted: float = 0.0  # tokens of other prompts that it would lose
    drag: float = 0.0  # how much each other request at work slows this one down
    beside: int = 0  # others at work on the node when this one begins
    weight: float = 1.0  # how much it is preferred


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a node would answer, in seconds and term by term, so that the choice can be explained.

    `evict` is not waited for: it is the time that others lose whose prompts were cached there.
    """

    node: str
    wait: float
    load: float
    prefill: float
    decode: float
    cached: int = 0
    evict: float = 0.0
    weight: float = 1.0  # 2: it is chosen as if it answered twice as fast
    reread: float = 0.0  # more seconds, if the node no longer has the tokens that should be cached

    @property
    def total(self) -> float:
        return self.wait + self.load + self.prefill + self.decode

    @property
    def cost(self) -> float:
        return (self.total + self.evict) / self.weight

    def __str__(self) -> str:
        terms = f"wait {self.wait:.2f} + load {self.load:.2f} + prefill {self.prefill:.2f}"
        evict = f"; evicts {self.evict:.2f}" if self.evict >= 0.005 else ""
        weight = f"; weight {self.weight:g}" if self.weight != 1 else ""
        return f"{self.node} {self.total:.2f} s ({terms} + decode {self.decode:.2f}{evict}{weight})"


@dataclass(frozen=True, slots=True)
class Route:
    """The node to use. `node` is empty when no node can answer, and `why` gives the reason."""

    node: str
    estimates: tuple[Estimate, ...]
    why: str = ""
    held_back: str = ""  # what made it wait besides the nodes

    @property
    def explained(self) -> str:
        """The chosen node first; one line, because it is also sent as a header."""
        first = sorted(self.estimates, key=lambda estimate: estimate.node != self.node)
        return "; ".join([*map(str, first), *([self.held_back] * bool(self.held_back))]) or self.why

    @property
    def chosen(self) -> Estimate:
        return next(estimate for estimate in self.estimates if estimate.node == self.node)


def route(servings: Sequence[NodeOutlook], *, prompt: int, output: int) -> Route:
    """`servings` come best first; that order decides between nodes that are about equal."""
    alive = [s for s in servings if s.up is not False]
    if not alive:
        reasons = "; ".join(f"{s.node} is down ({s.why_down or 'no answer'})" for s in servings)
        return Route("", (), reasons or "no node serves this model")
    estimates = tuple(_estimate(s, prompt, output) for s in alive)
    best = estimates[0]
    for other in estimates[1:]:
        if other.cost < best.cost * HYSTERESIS:
            best = other
    return Route(best.node, estimates)


def _estimate(serving: NodeOutlook, prompt: int, output: int) -> Estimate:
    fresh = max(0, prompt - serving.cached)
    slow = slowdown(serving.drag, serving.beside)
    return Estimate(
        serving.node,
        serving.wait,
        serving.load,
        fresh / serving.prefill * slow if serving.prefill else 0.0,
        output / serving.decode * slow if serving.decode else 0.0,
        min(prompt, serving.cached),
        serving.evicted / serving.prefill if serving.prefill else 0.0,
        serving.weight,
        (prompt - fresh) / serving.prefill * slow if serving.prefill else 0.0,
    )
