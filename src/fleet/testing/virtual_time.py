"""An event loop whose clock jumps: it moves on only when nothing is left to do before the next timer.

    run(scenario())   # `asyncio.sleep(300)` in it takes no time, and 300 seconds of its clock

The sockets are real. Everything that speaks to each other must run in this one loop: what another
thread or process does takes no time of this clock.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

BEGIN = 1000.0  # not zero, which means "never" to many programs
SETTLE = 0.001  # real seconds for a packet on its way through the loopback interface
STUCK = 60.0  # real seconds without a timer or a packet: what is waited for will never come

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = BEGIN
        self._threads = 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._virtual

    def move_on(self, seconds: float) -> None:
        self._virtual += seconds

    @property
    def waits_for_thread(self) -> bool:
        return self._threads > 0

    def run_in_executor(  # type: ignore[override]  # its arguments only pass through
        self, executor: Any, func: Any, *args: Any
    ) -> Any:
        """The clock stands still while a thread works for this loop."""
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _future: object) -> None:
        self._threads -= 1


class _Selector(selectors.DefaultSelector):
    loop: VirtualLoop

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self.loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self.loop.waits_for_thread:
            return super().select(STUCK)
        if ready := super().select(SETTLE):
            return ready
        if timeout is None:
            return self._last_chance()
        self.loop.move_on(timeout)
        return []

    def _last_chance(self) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.monotonic()
        while time.monotonic() - began < STUCK:
            if ready := super().select(0.05):
                return ready
        raise AssertionError("Nothing is left to do, and the scenario has not ended.")


def run(scenario: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)
