"""A connection to PostgreSQL: made anew when it breaks, and given up when no answer comes."""

from __future__ import annotations

import math
import re
import select
import threading
import time
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql as pg

from fleet.adapters.stores.migrations import (
    LATEST,
    carry_over,
    may_write,
    migration,
    only_readable,
    ranges,
    refuse_half_copied,
)
from fleet.adapters.stores.postgres.functions import WAKE_MILLISECONDS, functions, mark, qualified
from fleet.adapters.stores.sql import split_script
from fleet.domain.errors import BadInput, BadStore, Spoiled, StoreAway, TooSlow
from fleet.domain.search import stands_for_longer

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from fleet.adapters.home.bell import Bell
    from fleet.adapters.stores.rows import Row

LOCK = 0x464C4545
LEAST_CONNECTIONS = 8  # a server keeps five, and its requests need some
ROOM_SECONDS = 30.0  # to wait for a connection, when all that are allowed are in use
SEQUENCES = ("t", "m", "e", "l")  # kinds of ids of which there are many
DIALECT = {
    "key": "BIGINT PRIMARY KEY",
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "bytewise": ' COLLATE "C"',
    "generated": "STORED",
    "words": """
CREATE TABLE task_words (seq BIGINT PRIMARY KEY, words TSVECTOR NOT NULL);
CREATE INDEX task_words_word ON task_words USING gin (words)""",
    "numbers": """
CREATE SEQUENCE event_number;
SELECT setval('event_number', coalesce(max(number), 1), max(number) IS NOT NULL) FROM event;
ALTER TABLE event ALTER COLUMN number DROP IDENTITY;"""
    + "".join(
        f"""
CREATE SEQUENCE id_{kind};
SELECT setval('id_{kind}', coalesce(max(last), 1), max(last) IS NOT NULL)
  FROM counter WHERE kind = '{kind}';"""  # noqa: S608  # nosec B608  # constants
        for kind in SEQUENCES
    ),
}
SESSION = {
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "30s",
    "statement_timeout": "60s",
}
STOPPED = "900ms"  # a client that says nothing in the middle of `together` for so long is given up
STALE = "FL001"  # what our functions raise
TRIES = 5  # of a commit that the server ended because two waited for each other
FLOOR = 1.0  # seconds; whoever waits looks so often, whether or not it is woken
CLOCK_SECONDS = 10.0  # between two looks at the server's clock
STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # it counts while we sleep, too
SERVER_CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
ANSWER_SECONDS = 65.0  # for an answer to one statement, which the server would have ended by then
NETWORK = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


class _Unreachable(StoreAway):
    """Its message names the address and the user, which are not for everybody."""

    public = "The store cannot be reached."


class Stalled(psycopg.OperationalError):
    """The server said nothing for too long: whether it did what it was asked is not known."""


class Stale(Exception):
    """The write with this number found a record that is not as it was read."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Line(psycopg.Connection[Any]):
    """A connection that is given up when an answer does not come in time."""

    until = math.inf  # by `time.monotonic`, for whatever is waited for

    def wait(self, gen: Any, *args: Any, **given: Any) -> Any:
        until = min(self.until, time.monotonic() + ANSWER_SECONDS)
        try:
            return super().wait(_in_time(gen, until), *args, **given)
        except Stalled:
            self.close()
            raise


def _in_time(gen: Generator[Any, Any, Any], until: float) -> Generator[Any, Any, Any]:
    """The same, but it raises `Stalled` when it is later and nothing has come."""
    try:
        state = next(gen)
        while True:
            ready = yield state
            if not ready and time.monotonic() > until:
                raise Stalled("no answer in time")
            state = gen.send(ready)
    except StopIteration as end:
        return end.value


class Session:
    """One connection, for one thread.

    Behind PgBouncer in transaction mode each statement may be on another connection of the server:
    there we set nothing that outlives one, prepare none and listen to none. `is_pooled` is known by
    the number of the server's process, which a pool makes up.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "fleet",
        bell: Bell | None = None,
        most: int = 0,
        copying: bool = False,
        migrate: bool = True,
    ) -> None:
        self._url = url
        self.may_write = True
        self._copying = copying  # it may be half-copied
        self._room = _room(most)
        self._has_room = False
        self._name = schema
        self.schema = '"' + schema.replace('"', '""') + '"'
        self._bell = bell
        self._until, self._seconds = math.inf, 0.0  # see `limit`
        self._depth = 0  # of `together`
        self._alone = True
        self._spoiled = False
        self._channel = f"fleet_{schema}"[:63]
        self._woke_at, self._owes_wake, self._is_due = -math.inf, False, False
        self._clock: tuple[int, int] | None = None  # the server's time, and ours then
        self._connect()
        if migrate:
            self._migrate()

    def _connect(self) -> None:
        self._listening = False
        self._rung = False
        self._take_room()
        try:
            self._db = _Line.connect(self._url, autocommit=True, **NETWORK)  # type: ignore[arg-type]  # all of them are str or int
            self._db.until, self._timeout = self._until, 0.0
            ((pid,),) = self._db.execute("SELECT pg_backend_pid()").fetchall()
            self.is_pooled = pid != self._db.info.backend_pid
            if self.is_pooled:
                self._db.prepare_threshold = None
            else:
                given = ", ".join(
                    f"set_config('{name}', '{v}', false)" for name, v in SESSION.items()
                )
                self._db.execute(f"SELECT {given}".encode())
        except psycopg.Error as error:
            self._leave_room()
            raise _Unreachable(
                f"The store at {_without_secret(self._url)} cannot be reached: {_line(error)}.",
                fix="Is PostgreSQL running, and FLEET_STORE_URL right?",
            ) from error
        self._db.add_notify_handler(self._heard)

    def _heard(self, notify: psycopg.Notify) -> None:
        self._rung = self._rung or notify.pid != self._db.info.backend_pid

    def _migrate(self) -> None:
        if self._is_current():
            return
        with self._explained(), self._usable().transaction():
            db = self._db
            db.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [LOCK, self._name])
            if not self.rows(SCHEMA_THERE, {"schema": self._name}):  # else needs no permission
                db.execute(pg.SQL("CREATE SCHEMA {}").format(pg.Identifier(self._name)))
            db.execute("SELECT set_config('search_path', %s, true)", [self.schema])
            version = self._version()
            for number in range(version + 1, LATEST + 1):
                for statement in split_script(migration(number, DIALECT)):
                    db.execute(statement.encode())
                carry_over(number, "postgres", self._execute)
            if not self._has_functions():
                db.execute(functions(self.schema).encode())
            if version < LATEST:
                db.execute(SET_META, ["schema", str(LATEST)])
                db.execute("DELETE FROM meta WHERE key IN ('writes', 'reads')")
                for given in ranges().items():
                    db.execute(SET_META, given)

    def _is_current(self) -> bool:
        return self._version() >= LATEST and self._has_functions()

    def _has_functions(self) -> bool:
        name = f"{self.schema}.commit_{mark()}"
        return bool(self.rows("SELECT 1 WHERE to_regproc(:name) IS NOT NULL", {"name": name}))

    def _version(self) -> int:
        """Raise `BadStore`, having changed nothing, when this schema is not one for us."""
        tables = {name for (name,) in self.rows(TABLES_THERE, {"schema": self._name})}
        if not tables:
            return 0
        if not {"meta", "task", "event", "counter"} <= tables:
            raise BadStore(
                f"The schema '{self._name}' at {_without_secret(self._url)} "
                "belongs to another program.",
                fix="Give fleet a database of its own.",
            )
        meta: dict[str, str] = dict(self.rows("SELECT key, value FROM meta", {}))
        version = meta["schema"]
        if not self._copying:
            refuse_half_copied(meta, self._label)
        self.may_write = may_write(self._label, int(version), meta)
        return int(version)

    @property
    def _label(self) -> str:
        return f"The store at {_without_secret(self._url)}"

    def must_write(self) -> None:
        if not self.may_write:
            raise only_readable(self._label)

    def peek(self) -> dict[str, str] | None:
        """What `meta` says, before anything is migrated; None: there is no store."""
        if not self.rows(TABLES_THERE, {"schema": self._name}):
            return None
        return dict(self.rows("SELECT key, value FROM meta", {}))

    @contextmanager
    def writing(self, *, wake: bool) -> Iterator[None]:
        """Each statement in here is a transaction, unless it is in `together`."""
        self.must_write()
        with self._explained():
            self._usable()
            yield
        if wake:
            self.wake()

    @contextmanager
    def together(self, *, alone: bool) -> Iterator[None]:
        """One transaction of ours around all. Only here can a client stop in the middle of one."""
        self.must_write()
        with self._explained():
            db = self._usable()
            self._depth, self._alone, self._spoiled = 1, alone, False
            try:
                with db.transaction():
                    db.execute(
                        f"SET LOCAL idle_in_transaction_session_timeout = '{STOPPED}'".encode()
                    )
                    yield
                    if self._spoiled:
                        raise Spoiled("Another request in the same transaction failed.")
            finally:
                self._depth = 0
        self.wake()

    def call(self, function: str, payload: str) -> list[Row]:
        """Call one of our functions, with JSON. The server does all of it, or nothing."""
        self.must_write()
        sql = f"SELECT * FROM {self.function(function)}(%s)".encode()  # noqa: S608  # nosec B608  # names of ours
        with self._explained():
            try:
                return self._called(sql, payload)
            except psycopg.DatabaseError as error:
                if error.sqlstate == STALE:
                    raise Stale(int(str(error.diag.message_primary).split()[1])) from None
                raise

    def function(self, name: str) -> str:
        return f"{self.schema}.{name}_{mark()}"

    def _called(self, sql: bytes, payload: str) -> list[Row]:
        db = self._usable()
        if self._depth:
            return self._called_in_together(db, sql, payload)
        for _ in range(TRIES - 1):
            with suppress(psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                return db.execute(sql, [payload]).fetchall()
        return db.execute(sql, [payload]).fetchall()

    def _called_in_together(self, db: _Line, sql: bytes, payload: str) -> list[Row]:
        if self._alone:
            with db.transaction():  # a savepoint
                return db.execute(sql, [payload]).fetchall()
        try:
            return db.execute(sql, [payload]).fetchall()
        except BaseException:
            self._spoiled = True
            raise

    def wake(self, *, is_due: bool | None = None) -> None:
        """Those who wait learn of what was written; of several writes soon after another, once.

        `is_due`: whether the server has chosen this writer to wake them now, if it was asked.
        """
        self._owes_wake = True
        self._is_due = self._is_due or bool(is_due)
        if is_due is not False and not self._depth:
            self._pay_wake()

    def _pay_wake(self) -> None:
        """At most ten times a second, here and in all; what comes too soon is owed till the next write or wait."""
        now = time.monotonic()
        too_soon = not self._is_due and now - self._woke_at < WAKE_MILLISECONDS / 1000
        if not self._owes_wake or too_soon:
            return
        self._woke_at = now
        sql = f"SELECT {self.function('wake')}(%s, %s)".encode()
        with suppress(psycopg.Error):  # they look by themselves, too
            ((sent,),) = self._db.execute(sql, [self._channel, self._is_due]).fetchall()
            self._owes_wake, self._is_due = not sent, False

    def change(self, sql: str, values: Mapping[str, Any]) -> int:
        return self._execute(sql, values).rowcount

    def change_many(self, sql: str, values: Sequence[Mapping[str, Any]]) -> None:
        with self._db.cursor() as cursor:  # it sends them all before it waits for an answer
            cursor.executemany(_translated(sql, self.schema), values)

    def forget(self, seq: int, words: list[str]) -> None:  # noqa: ARG002  # its row has them
        self.change("DELETE FROM task_words WHERE seq = :seq", {"seq": seq})

    def counters(self) -> dict[str, int]:
        last: dict[str, int] = dict(self.rows("SELECT kind, last FROM counter", {}))
        for kind in SEQUENCES:
            sql = f"SELECT last_value - 1 + is_called::int FROM {self.schema}.id_{kind}"  # noqa: S608  # nosec B608  # names of ours
            ((number,),) = self.rows(sql, {})
            last[kind] = max(number, last.get(kind, 0))
        return last

    def set_counters(self, last: Mapping[str, int]) -> None:
        rest = [{"kind": k, "last": n} for k, n in last.items() if k not in SEQUENCES]
        self.change_many(SET_LAST, rest)
        for kind in SEQUENCES:
            if last.get(kind):
                self.rows(f"SELECT setval('{self.schema}.id_{kind}', {int(last[kind])})", {})

    def end_of_events(self) -> None:
        sql = (
            f"SELECT setval('{self.schema}.event_number', max(number)) FROM event"  # noqa: S608  # nosec B608  # names of ours
            " HAVING max(number) IS NOT NULL"
        )
        self.rows(sql, {})

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        with self._explained(), self._usable().transaction():
            self._db.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._db.execute(b"SET LOCAL idle_in_transaction_session_timeout = 0")
            yield

    def _execute(self, sql: str, values: Mapping[str, Any] | None = None) -> psycopg.Cursor[Row]:
        return self._db.execute(_translated(sql, self.schema), values)

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        with self._explained():
            db, query = self._usable(), _translated(sql, self.schema)
            if not (self.is_pooled and self._seconds) or self._depth:
                return db.execute(query, values).fetchall()
            with db.transaction():  # what is set must end with it: the next one is somebody else's
                db.execute(f"SET LOCAL statement_timeout = {self._milliseconds()}".encode())
                return db.execute(query, values).fetchall()

    def _milliseconds(self) -> int:
        return max(1, round(self._seconds * 1000))

    found_words, word_row = "task_words.words @@ CAST(:query AS tsquery)", "task_words.seq"

    def match(self, words: Sequence[str]) -> str:
        """Words are letters and digits, so nothing in them is an operator."""
        return " & ".join(
            f"'{word}':*" if stands_for_longer(word) else f"'{word}'" for word in words
        )

    def now(self) -> int:
        """By the server's clock, which is asked now and then, and ours, which counts meanwhile."""
        here = time.clock_gettime_ns(STEADY) // 1000
        if self._clock is None or here - self._clock[1] > CLOCK_SECONDS * 1_000_000:
            ((now,),) = self.rows(SERVER_CLOCK, {})
            self._clock = int(now), time.clock_gettime_ns(STEADY) // 1000
            return int(now)
        there, then = self._clock
        return there + here - then

    def limit(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds if seconds else math.inf
        self._db.until = self._until

    def wait(self, timeout: float) -> None:
        """For a commit anywhere since the last wait, or for a keeper on this host; not over `FLOOR`."""
        with self._explained():
            db = self._usable()
            self._pay_wake()
            if not self._listening and not self.is_pooled:
                db.execute(pg.SQL("LISTEN {}").format(pg.Identifier(self._channel)))
                self._listening = True
                return  # what was committed before could not be heard: look once more
            until = time.monotonic() + min(timeout, FLOOR)
            while not self._rung and (rest := until - time.monotonic()) > 0:
                if self._bell_rang(rest):
                    return
                self._take_in()
        self._rung = False

    def _take_in(self) -> None:
        """What the server has sent meanwhile."""
        line = self._db.pgconn
        line.consume_input()
        while notify := line.notifies():
            self._rung = self._rung or notify.be_pid != line.backend_pid

    def _bell_rang(self, timeout: float) -> bool:
        """False when there may be word from the server instead, or the time is up."""
        bell = self._bell.listening if self._bell else None
        sources = [self._db.fileno()] + ([bell] if bell is not None else [])
        poll = select.poll()  # `select` takes no descriptor above 1023
        for source in sources:
            poll.register(source, select.POLLIN)
        ready = [source for source, _ in poll.poll(timeout * 1000)]
        if self._bell is None or bell not in ready:
            return False
        self._bell.drain()
        return True

    def close(self) -> None:
        if not self._db.closed:
            self._pay_wake()
        self._db.close()
        self._leave_room()

    def _take_room(self) -> None:
        if self._room is None or self._has_room:
            return
        if not self._room.acquire(timeout=ROOM_SECONDS):
            raise StoreAway(
                "All connections to the store that this process may open are in use.",
                fix="Raise `store.pool_size` (POSTGRESQL_POOL_SIZE).",
            )
        self._has_room = True

    def _leave_room(self) -> None:
        if self._room is not None and self._has_room:
            self._has_room = False
            self._room.release()

    def _usable(self) -> _Line:
        """The connection, made anew when the last one broke; not within a transaction of that."""
        if time.monotonic() > self._until:
            raise Stalled("it is too late to ask")
        if self._db.closed:
            if self._depth:
                raise StoreAway("The store did not answer: the connection was lost.")
            self._connect()
        if self._seconds and self._seconds != self._timeout and not self.is_pooled:
            milliseconds = str(self._milliseconds())  # the server ends what nobody waits for
            self._db.execute("SELECT set_config('statement_timeout', %s, false)", [milliseconds])
            self._timeout = self._seconds
        return self._db

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (Stalled, psycopg.errors.QueryCanceled) as error:
            raise TooSlow(
                "The store did not answer in time.",
                fix="Try again later; is the PostgreSQL server busy or stopped?",
            ) from error
        except (psycopg.OperationalError, psycopg.InternalError) as error:
            raise _Unreachable(f"The store did not answer: {_line(error)}.") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise _Unreachable(
                f"The store at {_without_secret(self._url)} cannot be used: {_line(error)}.",
                fix="Give this user a database of its own.",
            ) from error


@cache
def _room(most: int) -> threading.BoundedSemaphore | None:
    """Shared by all connections of this process; None: there is no limit."""
    if not most:
        return None
    if most < LEAST_CONNECTIONS:
        raise BadInput(
            f"store.pool_size: {most} connections are too few.",
            fix=f"Set it (POSTGRESQL_POOL_SIZE) to {LEAST_CONNECTIONS} or more, or to 0.",
        )
    return threading.BoundedSemaphore(most)


SET_META = """
INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""
SET_LAST = """
INSERT INTO counter (kind, last) VALUES (:kind, :last)
ON CONFLICT (kind) DO UPDATE SET last = excluded.last
"""
SCHEMA_THERE = "SELECT 1 FROM pg_namespace WHERE nspname = :schema"
TABLES_THERE = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = :schema"


@cache
def _translated(sql: str, schema: str) -> bytes:
    return re.sub(r"(?<!:):([a-z]\w*)", r"%(\1)s", qualified(sql, schema)).encode()


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _without_secret(url: str) -> str:
    return re.sub(r"://([^:@/]*):[^@]*@", r"://\1:…@", url)
