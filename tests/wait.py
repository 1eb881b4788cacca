"""The one way to wait in a test: for a fact, and never for a time.

A test that sleeps and then asserts is a race, which a busy machine loses.
"""

from __future__ import annotations

import time

LIMIT = 90.0  # seconds; reached only by what would never come, so it can be long


def until(fact, why="", *, errors: tuple[type[BaseException], ...] = ()):
    """The first true value of `fact()`, in which these errors mean: not yet.

    `why` says what was waited for, or is called to say it.
    """
    end = time.monotonic() + LIMIT
    while not (value := _value(fact, errors)):
        if time.monotonic() > end:
            words = why() if callable(why) else why
            raise AssertionError(f"not within {LIMIT:.0f} s: {words or 'what was waited for'}")
        time.sleep(0.01)
    return value


def _value(fact, errors):
    try:
        return fact()
    except errors:
        return None
