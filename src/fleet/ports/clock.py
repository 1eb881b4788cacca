"""The time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Return the time, UTC in microseconds."""

    def since_boot(self) -> float:
        """Return the seconds since boot, including those in which the machine slept."""
