"""Work on several machines in parallel, and on each machine one item after the other."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

Step = TypeVar("Step")


class SideBySide(Generic[Step]):
    """`machines` and `steps` have, for each item, the machine and the progress.

    `work` is called with the number of an item when its turn has come.
    """

    def __init__(self, machines: Iterable[str], steps: Iterable[Step]) -> None:
        self._machines, self._steps = list(machines), list(steps)
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(machine,), daemon=True)
            for machine in dict.fromkeys(self._machines)
        ]

    def work(self, number: int) -> None:
        raise NotImplementedError

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def note(self, number: int, step: Step) -> None:
        with self._lock:
            self._steps[number] = step

    def step(self, number: int) -> Step:
        return self._steps[number]

    def steps(self) -> list[Step]:
        with self._lock:
            return list(self._steps)

    def wait(self, limit: float) -> bool:
        """Wait for at most `limit` seconds; return whether all items are done."""
        until = time.monotonic() + limit
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self, machine: str) -> None:
        for number, own in enumerate(self._machines):
            if own == machine:
                self.work(number)
