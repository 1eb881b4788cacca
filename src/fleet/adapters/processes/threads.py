"""Slow work beside the supervisor's loop: checkouts, set-ups, and waiting for terminals."""

from __future__ import annotations

import _thread
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.adapters.home.bell import Bell

T = TypeVar("T")

WIDTH = 8  # worktrees are limited by the disk, set-ups mostly wait


class ThreadJob:
    """One act in a thread of its own; `concurrent.futures` would cost every start milliseconds."""

    def __init__(self, act: Callable[[], None], room: threading.Semaphore, bell: Bell) -> None:
        self._act = act
        self._room = room
        self._bell = bell
        self._over = False
        self._error: BaseException | None = None
        _thread.start_new_thread(self._do, ())  # `Thread.start` waits until it really runs

    def done(self) -> bool:
        return self._over

    def result(self) -> None:
        if self._error is not None:
            raise self._error

    def _do(self) -> None:
        with self._room:
            try:
                self._act()
            except BaseException as error:  # noqa: BLE001  # `result` raises it
                self._error = error
        self._over = True
        self._bell.ring_self()


def side_by_side(acts: Sequence[Callable[[], T]]) -> list[T]:
    """What each returns, in their order. An interrupted caller waits for none of them."""
    if len(acts) == 1:
        return [acts[0]()]
    waiting, results, errors = deque(enumerate(acts)), dict[int, T](), list[BaseException]()

    def work() -> None:
        with suppress(IndexError):
            while True:
                number, act = waiting.popleft()
                try:
                    results[number] = act()
                except BaseException as error:  # noqa: BLE001  # raised below
                    errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in acts[:WIDTH]]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        waiting.clear()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(acts))]


class ThreadJobs:
    """A job rings `bell` when it is done, so that the supervisor need not poll.

    A supervisor that ends does not wait for its jobs: the next one finishes a job that was cut off.
    """

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._room = threading.BoundedSemaphore(WIDTH)

    def begin(self, act: Callable[[], None]) -> ThreadJob:
        return ThreadJob(act, self._room, self._bell)
