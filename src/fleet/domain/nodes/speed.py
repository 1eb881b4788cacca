"""How fast a node is with a model: running means of what the node or our own clock measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

WEIGHT = 0.3  # of the newest measurement
FEWEST = 32  # tokens read or written; with fewer a speed means nothing
SHORTEST_LOAD = 0.25  # seconds; Ollama reports a short time even when the model was loaded
PREFILL, DECODE, LOAD = 300.0, 25.0, 8.0  # assumed for a machine without measurements
OUTPUT = 200.0  # tokens that a reply is assumed to have before the first one


@dataclass(frozen=True, slots=True)
class Timing:
    """Tokens and seconds of one request; zero is unknown. `read` leaves out cached tokens."""

    read: int = 0
    reading: float = 0.0
    written: int = 0
    writing: float = 0.0
    loading: float = 0.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Tokens per second, and seconds to load; zero is unmeasured."""

    prefill: float = 0.0
    decode: float = 0.0
    load: float = 0.0


def after(pace: Pace, timing: Timing) -> Pace:
    prefill, decode, load = pace.prefill, pace.decode, pace.load
    if timing.read >= FEWEST and timing.reading > 0:
        prefill = mean(prefill, timing.read / timing.reading)
    # A short reply is a poor measurement, but better than a guess.
    if timing.written and timing.writing > 0 and (timing.written >= FEWEST or not decode):
        decode = mean(decode, timing.written / timing.writing)
    if timing.loading >= SHORTEST_LOAD:
        load = mean(load, timing.loading)
    return Pace(prefill, decode, load)


def mean(known: float, seen: float) -> float:
    return seen if not known else known + WEIGHT * (seen - known)


def guessed(pace: Pace, peers: Iterable[Pace]) -> Pace:
    """`pace` with gaps filled from the nodes that serve the same model, or from the defaults."""
    others = list(peers)
    return replace(
        pace,
        prefill=pace.prefill or _typical([p.prefill for p in others]) or PREFILL,
        decode=pace.decode or _typical([p.decode for p in others]) or DECODE,
        load=pace.load or _typical([p.load for p in others]) or LOAD,
    )


def _typical(speeds: list[float]) -> float:
    known = [speed for speed in speeds if speed]
    return sum(known) / len(known) if known else 0.0
