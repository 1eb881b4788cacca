"""How a stand-in node behaves, and what it remembers of a request."""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, Any

from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

LONGER_FORM = 0.9  # of the older prompt: the rest may be a reply that was written down otherwise


@dataclass(frozen=True, slots=True)
class FakeModel:
    name: str
    size: int = 4_700_000_000
    context: int = 32_768
    parameters: int = 7_600_000_000
    capabilities: tuple[str, ...] = ("completion", "tools")
    cloud: bool = False  # Ollama passes requests on; the model is never in `/api/ps`


@dataclass(slots=True)
class Manner:
    """Speeds in tokens per second, times in seconds; nothing set: a healthy node of no delay.

    Speeds are those of a request that is alone at work. A fault is of the requests whose path begins
    with `only`, and of the next `times` of them.
    """

    slots: int = 1
    drag: float = 1.0  # 1: all at work share one chip; 0: nobody slows another down
    fits: int = 0  # models in memory at once, the least used goes; 0: all of them
    prefill: float = 0.0
    decode: float = 0.0
    load: float = 0.0
    output: int = 8  # tokens of a reply, unless fewer are asked for
    price: float = 0.0  # dollars a token, which the answer states as OpenRouter's do
    calls: bool = False  # call the first tool that is offered, once
    reply: Callable[[dict[str, Any]], Any] | None = None  # by a request's body: a text, or a call
    version: str = "0.14.2"
    lag: float = 0.0  # before each answer, of whatever kind
    idle: float = 0.0  # a kept connection is closed after so long, without a word

    refuse: float | bool = False  # the port is closed; a number: for so many seconds
    drop: bool = False  # the network swallows what is sent to it: a machine without power
    hang: bool = False  # takes the request and says nothing
    drip: float = 0.0  # seconds between the single bytes of an answer
    stale: bool = False  # a kept connection breaks when it is used again
    die: int | None = None  # the connection breaks after so many pieces of a reply
    stall: int | None = None  # after so many pieces of a reply nothing more comes
    short: int | None = None  # the reply ends, in good form but for its end marker
    status: int = 0  # answers with this one in place of 200
    message: str = "the stand-in was told to fail"
    html: bool = False
    location: str = ""  # sends whoever asks to this address, with status 307
    after: str = ""  # the header Retry-After beside a `status`
    body: str = ""  # answers with this, and says that it is JSON; with 200, or with `status`
    events: str = ""  # answers with this, and says that it is a stream of events
    garbage: bool = False  # what says that it is JSON and is not
    broken: dict[str, str] = field(default_factory=dict)  # by model: 500, with this message
    silent: tuple[str, ...] = ()  # models whose runner takes the request and never answers
    only: str = ""
    times: int | None = None


FAULTS = (
    "refuse",
    "drop",
    "hang",
    "drip",
    "stale",
    "die",
    "stall",
    "short",
    "status",
    "html",
    "location",
    "after",
    "body",
    "events",
    "garbage",
    "broken",
    "silent",
)
NAMES = tuple(each.name for each in fields(Manner))


def takes_fault(manner: Manner, path: str) -> bool:
    """Whether this request is to fail as declared; counts it towards `times`."""
    if not path.startswith(manner.only) or path in {"/seen", "/fault"}:
        return False
    if manner.times is None:
        return True
    manner.times -= 1
    return manner.times >= 0


@dataclass(slots=True)
class SeenRequest:
    """A request that reached the node. `outcome`: answered, left, died, hung, failed, or open."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float
    outcome: str = "open"
    cached: int = 0
    prompt: int = 0
    pieces: int = 0


@dataclass(slots=True)
class LoadedModel:
    """What of a model is in memory: its context size, and the prompts it has read."""

    resident: dict[str, int] = field(default_factory=dict)  # the least used first
    read: dict[str, list[str]] = field(default_factory=dict)

    def cached(self, model: str, prompt: str, slots: int) -> int:
        """Characters of the prompt that were read before; it is kept for the next.

        A slot keeps one prompt: a longer form replaces its shorter one, any other the oldest.
        """
        kept = self.read.setdefault(model, [])
        best = max(kept, key=lambda old: _common(old, prompt), default="")
        same = _common(best, prompt)
        if best and same > len(best) * LONGER_FORM:
            kept.remove(best)
        kept.append(prompt)
        del kept[:-slots]
        return same

    def load(self, model: str, context: int, fits: int) -> None:
        while fits and len(self.resident) >= fits:
            self.unload(next(iter(self.resident)))
        self.resident[model] = context

    def use(self, model: str) -> None:
        self.resident[model] = self.resident.pop(model)

    def unload(self, model: str) -> None:
        self.resident.pop(model, None)
        self.read.pop(model, None)

    def forget(self) -> None:
        """Forget all cached prompts, like a restarted server."""
        self.resident.clear()
        self.read.clear()


def _common(one: str, other: str) -> int:
    if other.startswith(one):
        return len(one)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
