"""Slow work beside the loop: checkouts, set-ups, and whatever a terminal takes its time for."""

from __future__ import annotations

import _thread
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.adapters.host.bell import Bell

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
            except BaseException as error:  # noqa: BLE001  # kept for whoever asks
                self._error = error
        self._over = True
        self._bell.ring_self()


class ThreadJobs:
    """`bell` is rung when a job is done, so that nobody has to look.

    Whoever ends does not wait for them: a job that was cut off is finished by the next supervisor.
    """

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._room = threading.BoundedSemaphore(WIDTH)

    def begin(self, act: Callable[[], None]) -> ThreadJob:
        return ThreadJob(act, self._room, self._bell)
