"""Reads for callers: never long in the event loop, in turns by member, and with a deadline."""

from __future__ import annotations

import asyncio
import resource
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError, TooSlow
from fleet.server.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.ports import Store

T = TypeVar("T")

INLINE = 0.01  # seconds that a read may take in the loop
THREADS = 4
EACH = 2  # threads that one caller may use at once
READ_SECONDS = 5.0
SLOW_SECONDS = 30.0  # for which a read that was slow twice is not tried in the loop again
WORK = 0.002  # seconds of processor time after which a slow read, not a busy machine, is to blame
OF_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)  # macOS lacks the first
KNOWN = 1000
EVERYBODYS = frozenset({"", "tokens", "streams"})  # callers that are the server, not a member


class ReadJob(NamedTuple):
    who: str
    act: Callable[[Store], Any]
    done: asyncio.Future[Any]


class _Late(NamedTuple):
    """When a read was slow. `to_blame`: it was slow before, too, and not because of others."""

    at: float
    to_blame: bool


class Reads:
    """`own` is the loop's store; `is_near`: it answers in microseconds, so the loop may wait for it.

    Most reads are so small that a thread would cost more than they do. So a read starts in the
    loop, and starts again in a thread when it takes longer than `INLINE`. The first read of a kind
    after a start often does. Only a read that is slow again goes to a thread at once, and only if
    it used the processor or waited for the disk: on a busy machine any read may have to wait, and
    in a thread it would wait longer. Callers share the threads fairly; each has at most `EACH`.
    """

    def __init__(self, open_store: Callable[[], Store], own: Store, *, is_near: bool) -> None:
        self._open, self.near = open_store, own if is_near else None
        self.store: Store = _OfThread(own)
        self._turns = Turns[ReadJob](EACH)
        self.most: int | None = None  # how many slow reads of one member may wait
        self._idle = 0
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._late: dict[tuple[str, str], _Late] = {}
        self._over = False

    def __len__(self) -> int:
        """The number of threads that were started."""
        return len(self._threads)

    async def do(
        self, who: str, act: Callable[[Store], T], *, kind: str = "", beside: bool = False
    ) -> T:
        """Return the result of `act`; raise `TooSlow` at the deadline.

        `kind` names reads that take about the same time; `beside`: never in the loop.
        """
        late = None if self.near is None else self._lately(who, kind)
        if self.near is not None and not beside and not (late and late.to_blame):
            before = _worked() if late else None
            self.near.limit(INLINE)
            try:
                return act(self.near)
            except TooSlow:
                self._note_slow(who, kind, before)
            finally:
                self.near.limit(0)
        return await self._do_beside(who, act)

    def stop(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _lately(self, who: str, kind: str) -> _Late | None:
        """Return when a read of this kind was slow, unless that is too long ago."""
        late = self._late.get((who, kind))
        if late is not None and time.monotonic() - late.at > SLOW_SECONDS:
            del self._late[who, kind]
            return None
        return late

    def _note_slow(self, who: str, kind: str, before: tuple[float, int] | None) -> None:
        """Remember a slow read. `before`: `_worked()` at its start, None for the first slow one."""
        if len(self._late) >= KNOWN:
            self._late.clear()
        to_blame = before is not None and _is_to_blame(before)
        self._late[who, kind] = _Late(time.monotonic(), to_blame)

    async def _do_beside(self, who: str, act: Callable[[Store], T]) -> T:
        job = ReadJob(who, act, asyncio.get_running_loop().create_future())
        with self._changed:
            self._turns.add(who, job, None if who in EVERYBODYS else self.most)
            # One that is idle may have been woken for another read, and not be up yet.
            if self._idle < len(self._turns) and len(self._threads) < THREADS:
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
                if not job.done.done():  # its caller still waits
                    result = job.act(store)
            except BaseException as failure:  # noqa: BLE001  # the caller is told
                error = failure
            with suppress(RuntimeError):  # the loop is gone
                job.done.get_loop().call_soon_threadsafe(_tell, job.done, result, error)
            with self._changed:
                self._turns.end(job.who)
                self._changed.notify()
        if store is not None:
            with suppress(FleetError):
                store.close()

    def _next(self) -> ReadJob | None:
        """Wait for a job and return it; None when the server stops."""
        with self._changed:
            self._idle += 1
            try:
                while not self._over:
                    if (taken := self._turns.take()) is not None:
                        return taken[1]
                    self._changed.wait()
                return None
            finally:
                self._idle -= 1


def _worked() -> tuple[float, int]:
    """Return this thread's processor time in seconds, and the blocks it has read from a disk."""
    return time.thread_time(), resource.getrusage(OF_THREAD).ru_inblock


def _is_to_blame(before: tuple[float, int]) -> bool:
    seconds, blocks = _worked()
    return seconds - before[0] > WORK or blocks > before[1]


_OWN = threading.local()


class _OfThread:
    """A store that passes each call to the store of the calling thread."""

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
