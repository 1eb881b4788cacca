"""Wrong secrets, counted: a caller who tries many is answered late."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from collections.abc import Callable

GUESSES, ALL_GUESSES, WHILE = 10, 1000, 60.0  # wrong secrets, from one address and in all
SLOW_SECONDS, SLOWED = 1.0, 64  # how late the answer to one more is, and for how many at once


class Guesses:
    """Counts wrong secrets. After a few from one address, or many in all, the reply is a late 429.

    A right secret is never refused for them: behind a proxy many people share one address.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._counts: Counter[str] = Counter()
        self._waiting = 0

    async def slow_down(self, where: str) -> None:
        if not (rest := self.count(where)):
            return
        if self._waiting < SLOWED:
            self._waiting += 1
            try:
                await asyncio.sleep(SLOW_SECONDS)
            finally:
                self._waiting -= 1
        raise HTTPException(429, headers={"Retry-After": str(int(rest) + 1)})

    def count(self, where: str) -> float:
        """Count a wrong secret; return the seconds to wait when there were too many, else 0."""
        now = self._clock()
        if now - self._since >= WHILE:
            self._since, self._counts = now, Counter()
        total = self._counts.total()
        if total < ALL_GUESSES:  # above it every guess is slowed, so addresses do not matter
            self._counts[where] += 1
        many = total >= ALL_GUESSES or self._counts[where] > GUESSES
        return WHILE - (now - self._since) if many else 0.0
