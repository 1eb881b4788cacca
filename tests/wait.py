"""The one way to wait in a test: for a fact, and never for a time.

A test that sleeps and then asserts is a race, which a busy machine loses.
"""

from __future__ import annotations

import time

LIMIT = 90.0  # seconds; reached only by what would never come, so it can be long
LOOK = 0.01  # seconds between two looks at least
LONGEST_LOOK = 0.3  # and at most


def until(fact, why="", *, errors: tuple[type[BaseException], ...] = ()):
    """The first true value of `fact()`, in which these errors mean: not yet.

    `why` says what was waited for, or is called to say it. What takes long to look at, such as a
    command, is looked at less often: it would keep what is waited for from the processor.
    """
    begun = time.monotonic()
    end = begun + LIMIT
    while not (value := _value(fact, errors)):
        now = time.monotonic()
        if now > end:
            words = why() if callable(why) else why
            raise AssertionError(f"not within {LIMIT:.0f} s: {words or 'what was waited for'}")
        time.sleep(min(LONGEST_LOOK, max(LOOK, 2 * (now - begun))))
        begun = time.monotonic()
    return value


def _value(fact, errors):
    try:
        return fact()
    except errors:
        return None
