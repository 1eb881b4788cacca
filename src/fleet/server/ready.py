"""Whether the server can do its work: `/ready` tries it, `/health` says what was seen last."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.domain.errors import FleetError, StoreAway
from fleet.domain.task import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleet.ports import Store

TRUST_SECONDS = 1.0  # for which a result is reused, however many requests there are
STORE_SECONDS = 2.0  # seconds for the store
FREE_BYTES = 32 << 20  # on the disk of the home
SILENT_SECONDS = 10.0  # without a look at the store after which it counts as unavailable
PROBE = "probe"  # the kind of id that is created to try a write
BEAT = 60 * SECOND  # the longest time between two renewals of a supervisor's lease

Problems = dict[str, str]  # by what has them: the store, the disk, the supervisor


class Readiness:
    """Finds what keeps the server from working. A thread opens the store, which may stall.

    The sentences contain no address or path: callers need no token.
    """

    def __init__(self, open_store: Callable[[], Store], home: Path, host: str) -> None:
        self._open, self._home, self._host = open_store, home, host
        self.supervised = False  # a supervisor should be at work here
        self._look: asyncio.Future[Problems] | None = None
        self._looked = 0.0
        self._last: Problems = {}
        self._trouble = ""  # of the last request that needed the store

    def worked(self) -> None:
        """Note that a write worked, so the store's problem is over."""
        if self._trouble:
            self._trouble = ""
            self._last.pop("store", None)

    def failed(self, error: BaseException) -> None:
        """Note an error of the store; other errors, such as of a terminal, are passed over."""
        if isinstance(error, StoreAway):
            self._trouble = _store_problem(error)

    def known(self, watched: float, trouble: str) -> Problems:
        """Return the last known problems, without trying anything.

        `watched`: when the event watch last looked at the store; `trouble`: why that failed.
        """
        problems = dict(self._last)
        if self._trouble or trouble:
            problems["store"] = self._trouble or trouble
        elif time.monotonic() - watched > SILENT_SECONDS:
            problems["store"] = f"The store has not answered for {SILENT_SECONDS:g} seconds."
        return problems

    async def problems(self) -> Problems:
        """Try the store and the disk; concurrent callers share one try."""
        if self._look is None or (
            self._look.done() and time.monotonic() - self._looked > TRUST_SECONDS
        ):
            self._look, self._looked = asyncio.get_running_loop().create_future(), time.monotonic()
            threading.Thread(target=self._try, args=(self._look,), daemon=True).start()
        done, _ = await asyncio.wait({self._look}, timeout=STORE_SECONDS)
        slow = {"store": f"The store did not answer within {STORE_SECONDS:g} seconds."}
        self._last = self._look.result() if done else slow
        if "store" not in self._last:
            self._trouble = ""
        return self._last

    def _try(self, look: asyncio.Future[Problems]) -> None:
        """Try the store and the disk, in a thread; set the problems as the result of `look`."""
        problems = self._disk()
        try:
            problems |= self._store()
        except FleetError as error:
            problems["store"] = _store_problem(error)
        except Exception as error:  # noqa: BLE001  # the caller who waits gets one
            problems["store"] = f"The store cannot be used ({type(error).__name__})."
        with suppress(RuntimeError):  # the server has ended
            look.get_loop().call_soon_threadsafe(_answer, look, problems)

    def _disk(self) -> Problems:
        try:
            disk = os.statvfs(self._home)
        except OSError as error:
            return {"disk": f"The home cannot be read: {error.strerror}."}
        free = disk.f_bavail * disk.f_frsize
        return {} if free >= FREE_BYTES else {"disk": f"The disk has {free >> 20} MB left."}

    def _store(self) -> Problems:
        store = self._open()
        try:
            store.new_id(PROBE)  # a write that reaches the disk
            if not self.supervised:
                return {}
            row = store.hosts().get(self._host)
            beats = row is not None and row.holder and store.now() - row.renewed_at < BEAT
            return {} if beats else {"supervisor": "The supervisor sends no sign of life."}
        finally:
            store.close()


def _answer(look: asyncio.Future[Problems], problems: Problems) -> None:
    if not look.done():
        look.set_result(problems)


def _store_problem(error: FleetError) -> str:
    if error.code == "disk_full":
        return "The disk of the store is full."
    return f"The store cannot be used ({error.code})."
