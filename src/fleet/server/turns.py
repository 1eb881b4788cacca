"""Fair queues: members take turns, however many jobs each of them has."""

from __future__ import annotations

import threading
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

J = TypeVar("J")


class Turns(Generic[J]):
    """A fair queue, of which at most `each` jobs of one member run at once. Not thread-safe."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._waiting: dict[str, deque[J]] = {}
        self._going: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many jobs wait."""
        return sum(map(len, self._waiting.values()))

    def add(self, who: str, job: J, most: int | None = None) -> None:
        """Raise `Refused` when so many of this member wait already."""
        line = self._waiting.get(who, ())
        if most is not None and len(line) >= most:
            raise Refused(
                f"{len(line)} slow requests of yours wait already.",
                fix="Wait for their answers first.",
                code="too_many_at_once",
            )
        self._waiting.setdefault(who, deque()).append(job)

    def take(self) -> tuple[str, J] | None:
        """Return the next member and their oldest job, or None; call `end` when it is done."""
        for who, line in self._waiting.items():
            if self._going[who] < self._each:
                job = line.popleft()
                del self._waiting[who]
                if line:  # the member goes to the end of the queue
                    self._waiting[who] = line
                self._going[who] += 1
                return who, job
        return None

    def end(self, who: str) -> None:
        self._going[who] -= 1
        if not self._going[who]:
            del self._going[who]


class FairThreads:
    """Threads in which members take turns, so that one with many jobs delays only itself.

    `each`: how many jobs of one member run at once; `most`: how many of one may wait.
    """

    def __init__(self, name: str, threads: int, each: int, most: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._lock = threading.Lock()
        self._turns, self._most = Turns[Any](each), most

    def __len__(self) -> int:
        """How many jobs wait."""
        return len(self._turns)

    def submit(self, who: str, act: Callable[[], Any]) -> Future[Any]:
        """Run `act` in a thread; raise `Refused` when too many jobs of this member wait."""
        done: Future[Any] = Future()
        with self._lock:
            self._turns.add(who, (act, done), self._most)
        self._pool.submit(self._next)
        return done

    def _next(self) -> None:
        """Do jobs until none may run.

        It is submitted once for each job. A job that had to wait for others of its member is done
        by the call that did those, so its own call may find none left.
        """
        while True:
            with self._lock:
                taken = self._turns.take()
            if taken is None:
                return
            who, (act, done) = taken
            try:
                _do(act, done)
            finally:
                with self._lock:
                    self._turns.end(who)


def _do(act: Callable[[], Any], done: Future[Any]) -> None:
    if not done.set_running_or_notify_cancel():  # the caller has left
        return
    try:
        done.set_result(act())
    except BaseException as error:  # noqa: BLE001  # the caller is told
        done.set_exception(error)
