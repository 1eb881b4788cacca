"""The time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """UTC, in microseconds."""

    def since_boot(self) -> float:
        """Seconds, which also pass while the machine sleeps."""
