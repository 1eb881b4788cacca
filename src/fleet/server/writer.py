"""The one thread that writes. It writes waiting requests in one transaction, with one fsync."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from contextlib import suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import Spoiled, TooSlow, Unavailable
from fleet.operations.catalogue import perform
from fleet.server.http.idempotency import once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleet.operations.catalogue import Context, Request
    from fleet.ports import Store

MAX_REQUESTS = 256  # in one transaction, for which each of them waits
LONGEST = 0.01  # seconds for which the event loop waits for a batch's statements
CROWD_SECONDS = 0.05  # two requests within this time are a rush, which lasts as long again
BATCH_SECONDS = 0.1  # after which the rest of a batch is put off to the next one
WRITE_SECONDS = 15.0  # for a batch; what is not written by then is refused
END_SECONDS = 0.005  # between two checks, when the server stops, whether all is written
QUIET = 0.0001  # seconds without another request after which a crowd's batch is written


class WriteJob(NamedTuple):
    context: Context
    request: Request[Any]
    done: asyncio.Future[Any]
    key: str = ""


def in_turns(jobs: list[WriteJob]) -> list[WriteJob]:
    """Return the jobs in turns: the first of each member, then the second of each, and so on."""
    lines: dict[tuple[str, str], list[WriteJob]] = {}
    for job in jobs:
        actor = job.context.actor
        lines.setdefault((actor.team, actor.name), []).append(job)
    if len(lines) < 2:
        return jobs
    return [job for row in zip_longest(*lines.values()) for job in row if job is not None]


class Writer:
    """`wrote` is called after each transaction, in this thread.

    All callers are in one event loop. It gathers their requests while this thread writes, and then
    for as long as more come in: one large transaction costs far less than many small ones. The
    loop stands still while this thread sends a batch's statements to the store, unless that takes
    long, because two threads that alternate at each statement need twice the time. The loop goes
    on while the disk is being waited for.
    """

    def __init__(self, open_store: Callable[[], Store], wrote: Callable[[], None]) -> None:
        self._open = open_store
        self._wrote = wrote
        self._batches: queue.SimpleQueue[list[WriteJob] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._gathered: list[WriteJob] = []
        self._began = 0.0  # when the current batch was handed over
        self._newest = 0.0  # when the last request came
        self._busy = self._ended = False
        self._crowd = False  # the last batch had several requests
        self._rush = False  # the newest request came soon after another
        self._stated = threading.Event()  # all statements of the batch were sent to the store
        self._quick = True  # sending the last batch took less than `LONGEST`

    @property
    def crowded(self) -> bool:
        """Whether several requests came just now, at once or in quick succession."""
        return self._rush and time.perf_counter() - self._newest < CROWD_SECONDS

    def __len__(self) -> int:
        """How many requests wait to be written."""
        return len(self._gathered)

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        """Write all that was asked for, then end the thread."""
        self._ended = True
        while self._busy or self._gathered:
            if not self._busy:
                self._take(len(self._gathered))
            await asyncio.sleep(END_SECONDS)
        self._batches.put(None)
        await asyncio.to_thread(self._thread.join)

    def do(self, context: Context, request: Request[Any], key: str = "") -> asyncio.Future[Any]:
        """Return a future for the reply, done when it is on the disk; for `key`, see `once`."""
        if self._ended:
            raise Unavailable("The server is shutting down.", fix="Try again when it is back.")
        now = time.perf_counter()
        if self._busy and now - self._began > WRITE_SECONDS:
            raise TooSlow("The store has not answered for a while.", fix="Try again later.")
        loop = asyncio.get_running_loop()
        job = WriteJob(context, request, loop.create_future(), key)
        self._gathered.append(job)
        self._rush, self._newest = now - self._newest < CROWD_SECONDS, now
        if len(self._gathered) == 1 and not self._busy:
            loop.call_soon(self._hand_over, loop)
        return job.done

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the gathered requests to the thread; runs in the loop, after pending input."""
        if not self._gathered:  # the server stopped, and took them
            return
        full = len(self._gathered) >= MAX_REQUESTS
        if self._crowd and not full and time.perf_counter() - self._newest < QUIET:
            loop.call_soon(self._hand_over, loop)
            return
        self._crowd = len(self._gathered) > 1
        self._take(MAX_REQUESTS)
        if self._quick:
            self._stated.wait(LONGEST)

    def _take(self, most: int) -> None:
        jobs = in_turns(self._gathered)
        batch, self._gathered = jobs[:most], jobs[most:]
        self._busy, self._began = True, time.perf_counter()
        self._stated.clear()
        self._batches.put(batch)

    def _finish(
        self,
        loop: asyncio.AbstractEventLoop,
        results: list[tuple[WriteJob, Any, BaseException | None]],
        rest: list[WriteJob],
    ) -> None:
        """Set the results; runs in the loop. `rest`: requests that the batch had no time for."""
        self._busy = False
        self._gathered = rest + self._gathered
        for job, reply, failed in results:
            if job.done.done():  # the caller has left
                continue
            if failed is not None:
                job.done.set_exception(failed)
            else:
                job.done.set_result(reply)
        if self._gathered and not self._ended:
            loop.call_soon(self._hand_over, loop)

    def _run(self) -> None:
        store = self._open()
        try:
            while (batch := self._batches.get()) is not None:
                self._write(store, batch)
        finally:
            store.close()

    def _write(self, store: Store, batch: list[WriteJob]) -> None:
        results: list[tuple[WriteJob, Any, BaseException | None]]
        try:
            try:
                results = self._written(store, batch, alone=False)
            except Spoiled:  # rare: repeat each in its own transaction, which costs more
                results = self._written(store, batch, alone=True)
        except BaseException as error:  # noqa: BLE001  # the caller is told; the thread goes on
            results = [(job, None, error) for job in batch]
            self._stated.set()
        with suppress(RuntimeError):  # the loop has ended, and its callers with it
            loop = batch[0].done.get_loop()
            loop.call_soon_threadsafe(self._finish, loop, results, batch[len(results) :])
        self._wrote()

    def _written(
        self, store: Store, batch: list[WriteJob], *, alone: bool
    ) -> list[tuple[WriteJob, Any, BaseException | None]]:
        began = time.perf_counter()
        store.limit(WRITE_SECONDS)
        with store.together(alone=alone):
            results = list(self._until(began + BATCH_SECONDS, store, batch))
            self._quick = time.perf_counter() - began < LONGEST
            self._stated.set()  # only the disk is waited for now
        return results

    def _until(
        self, end: float, store: Store, batch: list[WriteJob]
    ) -> Iterator[tuple[WriteJob, Any, BaseException | None]]:
        """Do the batch's jobs until `end`: at least one, and all when the server stops."""
        for job in batch:
            yield (job, *_tried(store, job))
            if time.perf_counter() > end and not self._ended:
                return


def _tried(store: Store, job: WriteJob) -> tuple[Any, BaseException | None]:
    context = job.context._replace(store=store)
    try:
        if job.key:
            return once(context, job.request, job.key), None
        return perform(context, job.request), None
    except Exception as error:  # noqa: BLE001  # it is the caller who must know
        return None, error
