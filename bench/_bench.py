"""Measure ours beside a peer in one run, print both with their ratio, and hold it to a bar."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def race(ours: Callable[[], object], peer: Callable[[], object], times: int) -> tuple[float, float]:
    """The median seconds of each, taken in turns so that both meet the same noise; warmed up."""
    took: tuple[list[float], list[float]] = ([], [])
    for turn in range(-3, times):
        for call, seconds in zip((ours, peer), took, strict=True):
            start = time.perf_counter()
            call()
            if turn >= 0:
                seconds.append(time.perf_counter() - start)
    return statistics.median(took[0]), statistics.median(took[1])


def process(argv: Sequence[str], env: Mapping[str, str]) -> Callable[[], object]:
    """Run a command to its end; a failing one ends the benchmark."""
    return lambda: subprocess.run(argv, env=dict(env), stdout=subprocess.DEVNULL, check=True)


def verdict(
    what: str,
    ours: tuple[str, float],
    peer: tuple[str, float],
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> bool:
    """Print one line; each figure comes with how it is to be shown. False when over the bar."""
    ratio = ours[1] / peer[1]
    good = (at_most is None or ratio <= at_most) and (at_least is None or ratio >= at_least)
    bar = f"at most {at_most:g} x" if at_most is not None else f"at least {at_least:g} x"
    print(
        f"{what}: {ours[0].format(ours[1])} against {peer[0].format(peer[1])}: "
        f"{ratio:.2f} x (bar: {bar}) {'ok' if good else 'OVER THE BAR'}",
        flush=True,
    )
    return good


def finish(*verdicts: bool) -> None:
    sys.exit(0 if all(verdicts) else 1)
