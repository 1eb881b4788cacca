"""Reading for those who ask: never for long in the loop, in turns, and with a deadline."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError, TooSlow

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.ports import Store

T = TypeVar("T")

INLINE = 0.01  # seconds that a read may take in the loop
THREADS = 4
EACH = 2  # threads that one caller may use at once
READ_SECONDS = 5.0
SLOW_SECONDS = 30.0  # for which what took long is not tried in the loop again
KNOWN = 1000


class Job(NamedTuple):
    who: str
    act: Callable[[Store], Any]
    done: asyncio.Future[Any]


class Reads:
    """`own` is the loop's store; `is_near`: it answers in microseconds, so the loop may wait for it.

    Most reads are so small that a thread would cost more than they do: they are begun in the loop,
    and begun again in a thread when they take longer than `INLINE`. Threads are shared fairly among
    those who ask, each of whom has at most `EACH` of them.
    """

    def __init__(self, open_store: Callable[[], Store], own: Store, *, is_near: bool) -> None:
        self._open, self.near = open_store, own if is_near else None
        self.store: Store = _OfThread(own)
        self._waiting: dict[str, deque[Job]] = {}
        self._going: Counter[str] = Counter()
        self._idle = 0
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._slow: dict[tuple[str, str], float] = {}
        self._over = False

    def __len__(self) -> int:
        """The threads that it has."""
        return len(self._threads)

    async def do(
        self, who: str, act: Callable[[Store], T], *, kind: str = "", beside: bool = False
    ) -> T:
        """Raise `TooSlow` at the deadline. `kind` tells what it is; `beside`: not in the loop."""
        if self.near is not None and not beside and not self._is_slow(who, kind):
            self.near.limit(INLINE)
            try:
                return act(self.near)
            except TooSlow:
                if len(self._slow) >= KNOWN:
                    self._slow.clear()
                self._slow[who, kind] = time.monotonic() + SLOW_SECONDS
            finally:
                self.near.limit(0)
        return await self._do_beside(who, act)

    def stop(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _is_slow(self, who: str, kind: str) -> bool:
        return bool(self._slow) and self._slow.get((who, kind), 0.0) > time.monotonic()

    async def _do_beside(self, who: str, act: Callable[[Store], T]) -> T:
        job = Job(who, act, asyncio.get_running_loop().create_future())
        with self._changed:
            self._waiting.setdefault(who, deque()).append(job)
            if not self._idle and len(self._threads) < THREADS:
                thread = threading.Thread(
                    target=self._run, name=f"reads-{len(self._threads)}", daemon=True
                )
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        try:
            async with asyncio.timeout(READ_SECONDS + 1):
                result: T = await job.done
                return result
        except TimeoutError:
            raise TooSlow(
                f"Reading this took more than {READ_SECONDS:g} seconds.",
                fix="Try again later, and ask for less at once.",
            ) from None

    def _run(self) -> None:
        store: Store | None = None
        while (job := self._next()) is not None:
            result: Any = None
            error: BaseException | None = None
            try:
                store = store or self._open()
                store.limit(READ_SECONDS)
                _OWN.store = store
                if not job.done.done():  # a caller still waits for it
                    result = job.act(store)
            except BaseException as failure:  # noqa: BLE001  # the caller is told
                error = failure
            with suppress(RuntimeError):  # the loop is gone
                job.done.get_loop().call_soon_threadsafe(_tell, job.done, result, error)
            with self._changed:
                self._going[job.who] -= 1
                if not self._going[job.who]:
                    del self._going[job.who]
                self._changed.notify()
        if store is not None:
            with suppress(FleetError):
                store.close()

    def _next(self) -> Job | None:
        """The oldest of whoever has waited longest for a turn; None at the end."""
        with self._changed:
            self._idle += 1
            try:
                while not self._over:
                    for who, jobs in self._waiting.items():
                        if self._going[who] < EACH:
                            return self._taken(who, jobs)
                    self._changed.wait()
                return None
            finally:
                self._idle -= 1

    def _taken(self, who: str, jobs: deque[Job]) -> Job:
        job = jobs.popleft()
        del self._waiting[who]
        if jobs:  # the others come first
            self._waiting[who] = jobs
        self._going[who] += 1
        return job


_OWN = threading.local()


class _OfThread:
    """Whichever store belongs to the thread that asks."""

    def __init__(self, loops: Store) -> None:
        self._loops = loops

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_OWN, "store", self._loops), name)


def _tell(done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if done.done():  # no caller waits any more
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(result)
