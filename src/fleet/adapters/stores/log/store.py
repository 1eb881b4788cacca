"""The truth is a log of commits; each host reads from its own copy of it, an SQLite file.

A commit is decided on the copy, in a transaction, and counts once the log has it under the next
number. If another host took that number, the transaction is undone, what came is applied, and the
commit is decided again. So the copy is never ahead of the log, and losing it loses nothing.
"""

from __future__ import annotations

import time
import zlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.adapters.stores import transfer
from fleet.adapters.stores.forgetting import DropEvents, DropTasks, forget
from fleet.adapters.stores.log.entry import LogCommit, LogRecord, Prune, pack, unpack
from fleet.adapters.stores.migrations import LATEST, refuse_half_copied
from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import META, Sqlite
from fleet.base.files import write_once
from fleet.domain.errors import BadStore, Conflict, Spoiled, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fleet.adapters.home.bell import Bell
    from fleet.adapters.stores.forgetting import Step as Forgetting
    from fleet.adapters.stores.log.entry import Step
    from fleet.adapters.stores.rows import Row
    from fleet.adapters.stores.sql import Holder
    from fleet.domain.event import Event
    from fleet.domain.run import Run
    from fleet.domain.schedule import Claim
    from fleet.ports import Change, CommitLog, Record

T = TypeVar("T")

VERSION_AT = slice(60, 64)  # of `user_version` in the header of an SQLite file
APPLIED = "@log"  # the counter of the entries that the copy has
SNAPSHOT = "snapshot"
SNAPSHOT_EVERY = 1000  # entries; a new host reads one snapshot and fewer entries than this
PAGE = 200  # entries that are read at once
FRESH_SECONDS = 0.2  # what is read is at most this much older than the log
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0  # seconds between two looks at the log while waiting
READ_COUNTER = "SELECT last FROM counter WHERE kind = :kind"
SET_COUNTER = (
    "INSERT INTO counter (kind, last) VALUES (:kind, :last)"
    " ON CONFLICT (kind) DO UPDATE SET last = max(counter.last, :last)"
)


class Taken(Exception):  # no error: the commit is decided again
    """Another writer has the number that we wanted."""


class Replica(Sqlite):
    """The copy of one host, which all its processes share."""

    refresh: Callable[[], object] = staticmethod(lambda: None)

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        if not self._db.in_transaction:
            self.refresh()
        return super().rows(sql, values)

    def _data_version(self) -> int:
        ((version,),) = super().rows("PRAGMA data_version", {})
        return int(version)

    def counter(self, kind: str) -> int:
        rows = super().rows(READ_COUNTER, {"kind": kind})
        return int(rows[0][0]) if rows else 0

    def set_counter(self, kind: str, last: int) -> None:
        self.change(SET_COUNTER, {"kind": kind, "last": last})

    def meta(self) -> dict[str, str]:
        return dict(super().rows(META, {}))

    def refuse_spoiled(self) -> None:
        if self._spoiled:
            raise Spoiled("Another request in the same transaction failed.")

    def changed_within(self, seconds: float) -> bool:
        """Whether another process of this host has written meanwhile, or rung the bell."""
        seen, until = self._seen, time.monotonic() + seconds
        self.wait(seconds)
        return self._seen != seen or time.monotonic() < until

    def whole(self) -> bytes:
        return self._db.serialize()


class LogStore(SqlStore):
    def __init__(
        self,
        log: CommitLog,
        path: Path,
        *,
        bell: Bell | None = None,
        taken: Callable[[str], bool] | None = None,
        copying: bool = False,
    ) -> None:
        self._log = log
        self._copying = copying  # it may be half-copied
        if not path.exists():
            _restore(log, path)
        self._copy = Replica(
            path, bell=bell, copying=True
        )  # of the log, which alone is to be whole
        super().__init__(self._copy, taken=taken)
        self._steps: list[Step] | None = None  # of the transaction that is going on
        self._sent = 0  # the number of the entry that we wrote last
        self._looked_at = -FRESH_SECONDS
        self._copy.refresh = self._refresh

    def commit(self, changes: Sequence[Change], events: Sequence[Event]) -> list[Record]:
        return self._write(
            lambda: super(LogStore, self).commit(changes, events), LogCommit(changes, events)
        )

    def claim(self, claims: Sequence[Claim]) -> list[Run]:
        while True:
            with suppress(Spoiled):  # another host was faster: which are left is decided again
                return super().claim(claims)

    def prune(self, kind: str, team: str, *, now: int) -> None:
        self._write(
            lambda: super(LogStore, self).prune(kind, team, now=now), Prune(kind, team, now)
        )

    def transfer(self, step: transfer.Step) -> None:
        act = transfer.prepared(step)
        self._write(lambda: act(self._copy), step)

    def _forget(self, step: Forgetting) -> list[str]:
        return self._write(lambda: forget(self._copy, step), step)

    @contextmanager
    def one_moment(self) -> Iterator[Holder]:
        self.catch_up()
        with super().one_moment() as db:
            yield db

    def new_id(self, kind: str) -> str:
        return self._write(lambda: super(LogStore, self).new_id(kind))

    def _write(self, act: Callable[[], T], *steps: Step) -> T:
        """Do it on the copy and, unless a transaction is going on, write it to the log."""
        if self._steps is not None:
            made = act()
            self._steps += steps
            return made
        while True:
            try:
                with self._transaction(alone=False):
                    made = act()
                    self._send(LogRecord(steps, dict(self._last or {})))
            except Taken:
                self.catch_up()
            except Conflict:
                if not self.catch_up():
                    raise
            else:
                self._keep_snapshot()
                return made

    @contextmanager
    def together(self, *, alone: bool = True) -> Iterator[None]:
        self.catch_up()
        try:
            with self._transaction(alone=alone) as steps:
                yield
                self._copy.refuse_spoiled()
                entry = LogRecord(tuple(steps), dict(self._last or {}))
                if entry.steps or entry.ids:
                    self._send(entry)
        except Taken:
            self._apply_again(entry)
        self._keep_snapshot()

    @contextmanager
    def _transaction(self, *, alone: bool) -> Iterator[list[Step]]:
        with super().together(alone=alone):
            steps: list[Step] = []
            self._steps = steps
            try:
                yield steps
            finally:
                self._steps = None

    def _apply_again(self, entry: LogRecord) -> None:
        """After other hosts were faster: only if it is still right, and its ids are still free."""
        while True:
            before = [self._copy.counter(kind) for kind in entry.ids]
            self.catch_up()
            if [self._copy.counter(kind) for kind in entry.ids] != before:
                raise Spoiled("Another machine took the same ids at the same time.")
            try:
                with self._transaction(alone=False):
                    self._replay(entry)
                    self._send(entry)
            except Taken:
                continue
            except Conflict as error:
                raise Spoiled(
                    "Another machine changed the same things at the same time."
                ) from error
            return

    def _send(self, entry: LogRecord) -> None:
        """The last act of a transaction on the copy: it is undone unless the log has it."""
        number = self._copy.counter(APPLIED) + 1
        self._copy.set_counter(APPLIED, number)
        packed = pack(entry)
        if len(packed) > self._log.most:
            name = f"large-{number}-{zlib.crc32(packed):08x}"
            self._log.put(name, packed)
            packed = pack(LogRecord(blob=name))
        if not self._append(number, packed):
            raise Taken
        self._sent = number

    def _append(self, number: int, packed: bytes) -> bool:
        """A success whose reply was lost, or which a client tried twice, is found by reading it."""
        try:
            if self._log.append(number, packed):
                return True
        except Unavailable:
            entries = self._log.read(number - 1, 1)
            if not entries:
                raise
        else:
            entries = self._log.read(number - 1, 1)
        return bool(entries) and entries[0][1] == packed

    def catch_up(self) -> int:
        """Apply what other hosts have written; how many entries."""
        count = 0
        while entries := self._log.read(self._copy.counter(APPLIED), PAGE):
            count += self._apply_all(entries)
            if len(entries) < PAGE:
                break
        self._looked_at = time.monotonic()
        if not self._copying:
            refuse_half_copied(self._copy.meta(), "The store")
        return count

    def _apply_all(self, entries: Sequence[tuple[int, bytes]]) -> int:
        whole = [(number, self._whole(packed)) for number, packed in entries]
        count = 0
        with super().together(alone=False):
            for number, entry in whole:
                if number == self._copy.counter(APPLIED) + 1:  # else another process was faster
                    self._replay(entry)
                    self._copy.set_counter(APPLIED, number)
                    count += 1
        return count

    def _whole(self, packed: bytes) -> LogRecord:
        entry = unpack(packed)
        if not entry.blob:
            return entry
        blob = self._log.get(entry.blob)
        if blob is None:
            raise BadStore(
                f"The log refers to {entry.blob}, which does not exist.",
                fix="Restore it from the service's own backup.",
            )
        return unpack(blob)

    def _replay(self, entry: LogRecord) -> None:
        for step in entry.steps:
            match step:
                case Prune():
                    super().prune(step.kind, step.team, now=step.now)
                case LogCommit():
                    super().commit(step.changes, step.events)
                case DropEvents() | DropTasks():
                    forget(self._copy, step)
                case _:
                    transfer.prepared(step)(self._copy)
        for kind, last in entry.ids.items():
            self._copy.set_counter(kind, last)

    def _refresh(self) -> None:
        if self._steps is None and time.monotonic() - self._looked_at >= FRESH_SECONDS:
            self._looked_at = time.monotonic()  # applying reads, too
            self.catch_up()

    def wait(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        pause = FIRST_PAUSE
        while (rest := until - time.monotonic()) > 0:
            if self._copy.changed_within(min(pause, rest)) or self.catch_up():
                return
            pause = min(2 * pause, LONGEST_PAUSE)

    def _keep_snapshot(self) -> None:
        """The writer of a thousandth entry keeps a copy for hosts that join later.

        The commit is made: if the copy cannot be written, the next thousandth brings one.
        """
        sent, self._sent = self._sent, 0
        if sent and sent % SNAPSHOT_EVERY == 0:
            with suppress(Unavailable):
                self._log.put(SNAPSHOT, zlib.compress(self._copy.whole()))

    def close(self) -> None:
        super().close()
        self._log.close()


def _restore(log: CommitLog, path: Path) -> None:
    """A new host begins with the snapshot, which has its own number in it, else with the first entry."""
    packed = log.get(SNAPSHOT)
    if packed is None:
        return
    whole = zlib.decompress(packed)
    if int.from_bytes(whole[VERSION_AT], "big") > LATEST:
        return  # a newer fleet made it; the entries may still be such as we know
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_once(path, whole)  # unless another process of this host was faster
