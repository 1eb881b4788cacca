"""Slow work beside the loop: checkouts and set-ups."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from fleet.adapters.host.bell import Bell

WIDTH = 8  # worktrees are limited by the disk, set-ups mostly wait


class ThreadJobs:
    """`bell` is rung when a job is done, so that nobody has to look."""

    def __init__(self, bell: Bell) -> None:
        self._pool = ThreadPoolExecutor(WIDTH, thread_name_prefix="fleet-job")
        self._bell = bell

    def begin(self, act: Callable[[], None]) -> Future[None]:
        future = self._pool.submit(act)
        future.add_done_callback(lambda _: self._bell.ring_self())
        return future

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
