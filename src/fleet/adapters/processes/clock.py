"""The machine's own clocks."""

from __future__ import annotations

import time

from fleet.base import machine


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1000

    def since_boot(self) -> float:
        return machine.since_boot()
