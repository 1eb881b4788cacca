"""Slow work beside the loop: checkouts and set-ups."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.adapters.host.bell import Bell

WIDTH = 8  # worktrees are limited by the disk, set-ups mostly wait


class ThreadJobs:
    """`bell` is rung when a job is done, so that nobody has to look.

    Whoever ends does not wait for them: a job that was cut off is finished by the next supervisor.
    """

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._room = threading.BoundedSemaphore(WIDTH)

    def begin(self, act: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        future.add_done_callback(lambda _: self._bell.ring_self())
        threading.Thread(target=self._do, args=(act, future), daemon=True).start()
        return future

    def _do(self, act: Callable[[], None], future: Future[None]) -> None:
        with self._room:
            try:
                act()
            except BaseException as error:  # noqa: BLE001  # kept for whoever asks
                future.set_exception(error)
            else:
                future.set_result(None)
