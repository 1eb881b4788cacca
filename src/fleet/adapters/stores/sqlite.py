"""SQLite: one file, many processes, one writer at a time."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from _thread import allocate_lock
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.adapters.stores.damage import beheaded, copy_aside, header
from fleet.adapters.stores.migrations import (
    LATEST,
    carry_over,
    may_write,
    migration,
    only_readable,
    ranges,
    refuse_half_copied,
)
from fleet.adapters.stores.sql import SqlStore, split_script
from fleet.domain.errors import BadStore, Spoiled, StoreAway, TooSlow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fleet.adapters.home.bell import Bell
    from fleet.adapters.stores.rows import Row

T = TypeVar("T")

APPLICATION = 0x464C4545  # "FLEE", so that another program's database is never taken for ours
KEY = "INTEGER PRIMARY KEY"  # the row number itself
DIALECT = {
    "key": KEY,
    "serial": KEY,
    "bytewise": "",
    "generated": "VIRTUAL",
    # without the text itself, which the task has; words are split by us, alike in both dialects
    "words": "CREATE VIRTUAL TABLE task_words"
    " USING fts5(words, content='', detail=none, tokenize='ascii')",
    "numbers": "",
}
META = "SELECT key, value FROM meta"
SET_LAST = (
    "INSERT INTO counter (kind, last) VALUES (:kind, :last)"
    " ON CONFLICT (kind) DO UPDATE SET last = excluded.last"
)
ADD_WORDS = "INSERT INTO task_words (rowid, words) VALUES (:seq, :words)"
FORGET_WORDS = "INSERT INTO task_words (task_words, rowid, words) VALUES ('delete', :seq, :words)"
BUSY_SECONDS = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.016
LOG_PAGES = 4000  # 16 MB of log: pages written often reach the database once, which saves 3 %
PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # on macOS a plain fsync does not reach the disk
    f"PRAGMA wal_autocheckpoint = {LOG_PAGES}",
)
INDEX_BYTES = 1 << 15
LOOK_SECONDS = 0.01  # between looks at `data_version`: 3 µs each, 2 % of a core
LATE_STEPS = 4000  # of SQLite's machine between looks at the clock, about 0.1 ms
FLOOR = 1.0  # seconds; a bell can be missed: the writer may not know of it

DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
UNUSABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
}


def open_url(
    url: str,
    bell: Bell | None,
    taken: Callable[[str], bool] | None,
    *,
    copying: bool = False,
    **_others: object,
) -> SqlStore:
    return SqlStore(Sqlite(path_of(url), bell=bell, copying=copying), taken=taken)


def path_of(url: str) -> Path:
    rest = url.partition("://")[2]
    return Path("/" + rest.lstrip("/")) if rest.startswith("/") else Path(rest)


def meta_in_file(path: Path) -> dict[str, str]:
    """The table `meta` of the file without its log, so that nothing is written beside it."""
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db,
    ):
        return dict(db.execute(META).fetchall())
    return {}


def peek_url(url: str, **_others: object) -> dict[str, str] | None:
    """What it says of itself; None: there is no store."""
    path = path_of(url)
    if not path.exists() or not path.stat().st_size:
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            ((schema,),) = db.execute("PRAGMA user_version").fetchall()
            return {**dict(db.execute(META).fetchall()), "schema": str(schema)}
    except sqlite3.Error as error:
        raise BadStore(f"{path} is not a Fleet store: {error}.") from error


# To close a file gives up every POSIX lock that this process has on it, those of SQLite's other
# connections too: the next process to leave would then remove the log that they still use. So a file
# that this process may have open is not opened again by us.
_OPENED: set[tuple[int, int] | None] = set()
_OPENING = allocate_lock()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


class Sqlite:
    """`bell` wakes a supervisor at once; without one, a waiting process polls.

    `copying`: it may be half-copied.
    """

    def __init__(self, path: Path, *, bell: Bell | None = None, copying: bool = False) -> None:
        self._path = path
        self._copying = copying
        self.may_write = True
        self._bell = bell
        self._broken: BadStore | None = None
        self._together = self._spoiled = False
        self._alone = True
        self._is_limited = False
        self._until = math.inf  # by `time.monotonic`
        try:
            self._db = self._open()
            self._seen = self._data_version()
        except sqlite3.DatabaseError as error:
            raise self._explain(error) from error

    def _open(self) -> sqlite3.Connection:
        with _OPENING:
            self._refuse_unopened()
            db = self._connect()
            _OPENED.add(_identity(self._path))
        try:
            for pragma in PRAGMAS:
                _patiently(partial(db.execute, pragma))
            behind = _patiently(lambda: self._version(db)) < LATEST
            ((journal,),) = _patiently(lambda: db.execute("PRAGMA journal_mode").fetchall())
            if journal != "wal":  # a new one, or a copy that was put back
                _patiently(lambda: db.execute("PRAGMA journal_mode = WAL"))
            if behind:
                _patiently(lambda: self._migrate(db))
            self._check_meta(dict(_patiently(lambda: db.execute(META).fetchall())))
        except BaseException:
            db.close()
            raise
        return db

    def _connect(self) -> sqlite3.Connection:
        old = os.umask(0o077)
        try:
            return sqlite3.connect(self._path, timeout=0, isolation_level=None)
        finally:
            os.umask(old)

    def _refuse_unopened(self) -> None:
        """Check the file itself, before SQLite may write a byte to it or beside it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if _identity(self._path) in _OPENED:
                return
            numbers = header(self._path)
            damaged = beheaded(self._path)
        except OSError as error:
            raise self._unusable(error.strerror or type(error).__name__) from error
        if damaged:
            raise self._damaged("it is empty, and its log is not")
        if numbers is not None:
            self._check_owner(numbers[0], tables=0)
            if numbers[1] > LATEST:
                may_write(str(self._path), numbers[1], meta_in_file(self._path))

    def _version(self, db: sqlite3.Connection) -> int:
        """The schema. Raise `BadStore` when this database is not fleet's, or too new."""
        # all three in one statement: another process may be creating it at this moment
        ((application, version, tables),) = db.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_application_id, pragma_user_version"
        )
        self._check_owner(application, tables)
        meta = dict(db.execute(META).fetchall()) if version > LATEST else {}
        self.may_write = may_write(str(self._path), version, meta)
        return int(version)

    def must_write(self) -> None:
        if not self.may_write:
            raise only_readable(str(self._path))

    def _check_owner(self, application: int, tables: int) -> None:
        if application != APPLICATION and (application or tables):
            raise BadStore(
                f"{self._path} is another program's database.",
                fix="Choose another file with FLEET_STORE_URL=sqlite:///…",
            )

    def _check_meta(self, meta: Mapping[str, str]) -> None:
        if not self._copying:
            refuse_half_copied(meta, str(self._path))

    def _migrate(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        try:
            for number in range(self._version(db) + 1, LATEST + 1):
                for statement in split_script(migration(number, DIALECT)):
                    db.execute(statement)
                carry_over(number, "sqlite", db.execute)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {LATEST}")
            db.execute("DELETE FROM meta WHERE key IN ('writes', 'reads')")
            db.executemany("INSERT INTO meta VALUES (?, ?)", ranges().items())
            db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise

    @contextmanager
    def together(self, *, alone: bool) -> Iterator[None]:
        """All writes in here reach the disk together, at the end."""
        with self._transaction():
            self._together, self._alone, self._spoiled = True, alone, False
            try:
                yield
            finally:
                self._together = False
            if self._spoiled:
                raise Spoiled("Another request in the same transaction failed.")
        if self._bell:
            self._bell.ring()

    @contextmanager
    def writing(self, *, wake: bool) -> Iterator[None]:
        if self._together:
            one = not wake  # a single statement, which fails as a whole
            with nullcontext() if one else self._part() if self._alone else self._spoiling():
                yield
            return
        with self._transaction():
            yield
        if wake and self._bell:
            self._bell.ring()

    @contextmanager
    def _spoiling(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._spoiled = True
            raise

    @contextmanager
    def _part(self) -> Iterator[None]:
        db = self._db
        db.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has rolled all of it back already
                db.execute("ROLLBACK TO part")
                db.execute("RELEASE part")
            raise
        db.execute("RELEASE part")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._broken:
            raise self._broken
        self.must_write()
        db = self._db
        try:
            if db.in_transaction:  # an interrupt came between a begin and its end
                db.execute("ROLLBACK")
            _patiently(lambda: db.execute("BEGIN IMMEDIATE"), self._until)
            try:
                yield
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back already
                    db.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            raise self._explain(error) from error

    def change(self, sql: str, values: Mapping[str, Any]) -> int:
        return self._db.execute(sql, values).rowcount

    def change_many(self, sql: str, values: Sequence[Mapping[str, Any]]) -> None:
        self._db.executemany(sql, values)

    def counters(self) -> dict[str, int]:
        return dict(self.rows("SELECT kind, last FROM counter WHERE substr(kind, 1, 1) <> '@'", {}))

    def set_counters(self, last: Mapping[str, int]) -> None:
        self.change_many(
            SET_LAST, [{"kind": kind, "last": number} for kind, number in last.items()]
        )

    def end_of_events(self) -> None:
        """SQLite numbers a row after the last one."""

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        self._db.execute("BEGIN")  # the first read fixes the moment
        try:
            self.rows("SELECT 1 FROM meta LIMIT 1", {})
            yield
        finally:
            self._db.execute("ROLLBACK")

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        if self._broken:
            raise self._broken
        if time.monotonic() > self._until:
            raise _too_slow()
        try:
            return _patiently(lambda: self._db.execute(sql, values).fetchall(), self._until)
        except sqlite3.DatabaseError as error:
            raise self._explain(error) from error

    found_words, word_row = "task_words MATCH :query", "task_words.rowid"

    def index(self, seq: int, words: list[str]) -> None:
        self.change(ADD_WORDS, {"seq": seq, "words": " ".join(words)})

    def forget(self, seq: int, words: list[str]) -> None:
        self.change(FORGET_WORDS, {"seq": seq, "words": " ".join(words)})

    def match(self, words: Sequence[str]) -> str:
        """Words are letters and digits, so nothing in them is an operator."""
        from fleet.domain.search import stands_for_longer  # noqa: PLC0415  # start-up time

        return " ".join(f'"{word}"*' if stands_for_longer(word) else f'"{word}"' for word in words)

    def now(self) -> int:
        return time.time_ns() // 1000

    def limit(self, seconds: float) -> None:
        if not self._is_limited:
            self._is_limited = True
            self._db.set_progress_handler(self._is_late, LATE_STEPS)
        self._until = time.monotonic() + seconds if seconds else math.inf

    def _is_late(self) -> bool:
        """Asked by SQLite in the middle of a statement; it stops when this is so."""
        return time.monotonic() > self._until

    def wait(self, timeout: float) -> None:
        """Wait for a commit of another process since the last wait; none is missed in between."""
        until = time.monotonic() + timeout
        rung = False
        while (version := self._data_version()) == self._seen and not rung:
            rest = until - time.monotonic()
            if rest <= 0:
                break
            if self._bell and self._bell.listening is not None:
                rung = self._bell.wait(min(FLOOR, rest))
            else:
                time.sleep(min(LOOK_SECONDS, rest))
        self._seen = version

    def close(self) -> None:
        self._db.close()

    def _data_version(self) -> int:
        ((version,),) = self.rows("PRAGMA data_version", {})
        return int(version)

    def _explain(self, error: sqlite3.DatabaseError) -> Exception:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None and isinstance(error, sqlite3.OperationalError):
            return self._damaged(str(error))  # a text column is not valid UTF-8
        kind = (code or 0) & 0xFF
        if kind in DAMAGED:
            return self._damaged(str(error))
        if kind == sqlite3.SQLITE_FULL or (kind == sqlite3.SQLITE_IOERR and self._is_disk_full()):
            full = StoreAway(
                f"The disk is full: {self._path} was not written.",
                fix="Free some space on that disk, then run the command again.",
                code="disk_full",
            )
            full.public = "The disk of the store is full: nothing was written."
            return full
        if kind == sqlite3.SQLITE_INTERRUPT:
            return _too_slow()
        if kind in UNUSABLE:
            return self._unusable(str(error))
        return error

    def _is_disk_full(self) -> bool:
        """SQLite reports an I/O error when its index of the log, a file of this size, does not fit."""
        try:
            disk = os.statvfs(self._path.parent)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < INDEX_BYTES

    def _damaged(self, how: str) -> BadStore:
        """The error; from now on this process neither reads nor writes the database."""
        self._broken = BadStore(
            f"{self._path} is damaged ({how}). {copy_aside(self._path)}",
            fix="Recover it with `sqlite3 FILE .recover`, or move it away to start afresh.",
        )
        return self._broken

    def _unusable(self, how: str) -> StoreAway:
        return _Unusable(
            f"{self._path} cannot be used: {how}.",
            fix="`fleet doctor` says whether you can write there. FLEET_HOME names another directory.",
        )


class _Unusable(StoreAway):
    """The message names a path, which is not for everybody."""

    public = "The store cannot be used."


def _too_slow() -> TooSlow:
    return TooSlow("Reading this took too long.", fix="Ask for less at once.")


def _patiently(act: Callable[[], T], limit: float = math.inf) -> T:
    """Try until nobody else is writing, or it is later than `limit`.

    The pauses grow: eight writers who look every half millisecond spend three times the work.
    The jitter keeps several waiters from starving one.
    """
    pause = FIRST_PAUSE
    until = 0.0
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in BUSY:
                raise
            now = time.monotonic()
            until = until or now + BUSY_SECONDS
            if now > limit:
                raise _too_slow() from error
            if now > until:
                raise StoreAway(
                    f"The store has been busy for {BUSY_SECONDS:.0f} s.",
                    fix="Check whether a backup or another program keeps it locked.",
                ) from error
        time.sleep((0.5 + os.urandom(1)[0] / 255) * pause)
        pause = min(2 * pause, LONGEST_PAUSE)
