"""How fast a node is with a model: running means of what the node or our own clock measured.

Speeds are those of a request that is alone at work. `drag` says how much each other request at work
on the node slows it down: 1 where all share one chip, 0 where the server batches them for nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

WEIGHT = 0.3  # of the newest measurement
BRIEFEST = 1e-6  # seconds; no node reads or writes anything in less
FEWEST = 32  # tokens read or written; with fewer we do not trust the speed
SHORTEST_LOAD = 0.25  # seconds; Ollama reports less even when the model was already loaded
PREFILL, DECODE, LOAD = 300.0, 25.0, 8.0  # assumed for a machine without measurements
OUTPUT = 200.0  # tokens that we assume for a reply before we have seen one
ALONE = 0.25  # other requests at work, on average; with fewer, a request counts as alone
CROWDED = 0.5  # with more, a speed tells how much requests slow each other down
MISSED = 3.0  # times slower than known; then the cache was probably lost, and all of it was read
HOPE = 1.3  # times faster than the best node we assume a new node to be, so that it is tried once


@dataclass(frozen=True, slots=True)
class Timing:
    """Tokens and seconds of one request; zero is unknown. `read` leaves out cached tokens.

    `uncached`: the tokens that it read if nothing was cached, where what was cached is only our guess.
    `beside`: how many others were at work on the node, on average.
    """

    read: int = 0
    reading: float = 0.0
    written: int = 0
    writing: float = 0.0
    loading: float = 0.0
    beside: float = 0.0
    uncached: int = 0


@dataclass(frozen=True, slots=True)
class Pace:
    """Tokens per second, and seconds to load; zero is unmeasured. `drag` is None when it is."""

    prefill: float = 0.0
    decode: float = 0.0
    load: float = 0.0
    drag: float | None = None


def after(pace: Pace, timing: Timing) -> Pace:
    crowded = timing.beside >= CROWDED
    slow = slowdown(1.0 if pace.drag is None else pace.drag, timing.beside)
    prefill, decode, load, drag = pace.prefill, pace.decode, pace.load, pace.drag
    if timing.read >= FEWEST and timing.reading > BRIEFEST:
        speed = timing.read / timing.reading * slow
        if speed * MISSED < prefill and timing.uncached:
            speed = min(prefill, timing.uncached / timing.reading * slow)
        prefill = mean(prefill, speed)
    # A short reply is a poor measurement, but better than a guess.
    if timing.written and timing.writing > BRIEFEST and (timing.written >= FEWEST or not decode):
        speed = timing.written / timing.writing
        if decode and crowded:
            drag = _mean_drag(drag, (decode / speed - 1) / timing.beside)
        else:
            decode = mean(decode, speed * slow)
    if timing.loading >= SHORTEST_LOAD:
        load = mean(load, timing.loading)
    return Pace(prefill, decode, load, drag)


def _mean_drag(known: float | None, seen: float) -> float:
    seen = min(1.0, max(0.0, seen))
    return seen if known is None else known + WEIGHT * (seen - known)


def mean(known: float, seen: float) -> float:
    return seen if not known else known + WEIGHT * (seen - known)


def slowdown(drag: float, beside: float) -> float:
    """How many times longer a request takes while so many others are at work."""
    return 1 + drag * max(0.0, beside)


def guessed(pace: Pace, peers: Iterable[Pace], *, drag: float = 1.0, new: bool = False) -> Pace:
    """`pace` with gaps filled from the nodes that serve the same model, or from the defaults.

    `drag` is that of its kind. A `new` node, which has answered nothing yet, is assumed to be faster
    than all others: else it would never be tried and measured.
    """
    others = list(peers)
    hopes = new and not pace.prefill and not pace.decode
    typical = _hoped if hopes else _typical
    return replace(
        pace,
        prefill=pace.prefill or typical([p.prefill for p in others]) or PREFILL,
        decode=pace.decode or typical([p.decode for p in others]) or DECODE,
        load=pace.load or _typical([p.load for p in others]) or LOAD,
        drag=drag if pace.drag is None else pace.drag,
    )


def _typical(speeds: list[float]) -> float:
    known = [speed for speed in speeds if speed]
    return sum(known) / len(known) if known else 0.0


def _hoped(speeds: list[float]) -> float:
    return max(speeds, default=0.0) * HOPE
