"""Times beside their limits. A busy machine makes them longer, so a test allows ten times as much."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

SLACK = float(os.environ.get("FLEET_WEB_SLACK", "10"))  # `make bench ARGS=web` sets it to 1


def judge(what: str, took: float, limit: float, unit: str = "ms") -> None:
    ratio = took / limit
    word = "ok" if ratio <= 1 else "OVER THE BAR"
    print(
        f"\n{what}: {took:.1f} {unit} against {limit:g} {unit}: {ratio:.2f} x (bar: at most 1 x) {word}"
    )
    assert ratio <= SLACK, f"{what}: {took:.1f} {unit}, over {SLACK:g} x {limit:g} {unit}"


@contextmanager
def within(seconds: float, what: str):
    begun = time.monotonic()
    yield
    judge(what, time.monotonic() - begun, seconds, "s")
