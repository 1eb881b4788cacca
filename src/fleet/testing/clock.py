"""A clock that moves when it is told to."""

from __future__ import annotations

START = 1_800_000_000_000_000


class FakeClock:
    def __init__(self, now: int = START) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def since_boot(self) -> float:
        return (self._now - START) / 1_000_000

    def advance(self, seconds: float) -> None:
        self._now += int(seconds * 1_000_000)
