"""The one thread that writes. What waits for it is written together, with one wait for the disk."""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from fleet.operations.catalogue import perform
from fleet.server.once import once

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.operations.catalogue import Context, Request
    from fleet.ports import Store

MOST = 256  # in one transaction: the last of them waits for all


class Job(NamedTuple):
    context: Context
    request: Request[Any]
    done: asyncio.Future[Any]
    key: str = ""


class Writer:
    """`wrote` is told after each transaction, in this thread.

    Those who wait do so in one loop, which is woken once for all of a transaction.
    """

    def __init__(self, open_store: Callable[[], Store], wrote: Callable[[], None]) -> None:
        self._open = open_store
        self._wrote = wrote
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Once what was taken is written."""
        self._jobs.put(None)
        self._thread.join()

    def do(self, context: Context, request: Request[Any], key: str = "") -> asyncio.Future[Any]:
        """Its result is known when it is on the disk. With a `key` it is done once; see `once`."""
        job = Job(context, request, asyncio.get_running_loop().create_future(), key)
        self._jobs.put(job)
        return job.done

    def _run(self) -> None:
        store = self._open()
        try:
            while (first := self._jobs.get()) is not None:
                batch, last = self._more(first)
                self._write(store, batch)
                self._wrote()
                if last:
                    break
        finally:
            store.close()

    def _more(self, first: Job) -> tuple[list[Job], bool]:
        batch = [first]
        while len(batch) < MOST:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return batch, True
            batch.append(job)
        return batch, False

    def _write(self, store: Store, batch: list[Job]) -> None:
        results: list[tuple[Job, Any, BaseException | None]]
        try:
            with store.together():
                results = [(job, *_tried(store, job)) for job in batch]
        except BaseException as error:  # noqa: BLE001  # whoever asked is told; the thread goes on
            results = [(job, None, error) for job in batch]
        with suppress(RuntimeError):  # the loop is gone, and with it those who asked
            batch[0].done.get_loop().call_soon_threadsafe(_tell, results)


def _tell(results: list[tuple[Job, Any, BaseException | None]]) -> None:
    for job, reply, failed in results:
        if job.done.done():  # whoever asked has left
            continue
        if failed is not None:
            job.done.set_exception(failed)
        else:
            job.done.set_result(reply)


def _tried(store: Store, job: Job) -> tuple[Any, BaseException | None]:
    context = job.context._replace(store=store)
    try:
        if job.key:
            return once(context, job.request, job.key), None
        return perform(context, job.request), None
    except Exception as error:  # noqa: BLE001  # it is whoever asked who must know
        return None, error
