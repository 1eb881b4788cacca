"""PostgreSQL: the store that many machines share."""

from __future__ import annotations

import math
import re
import select
import threading
import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql as pg

from fleet.adapters.stores.migrations import LATEST, carry_over, migration
from fleet.adapters.stores.sql import SqlStore, split_script
from fleet.domain.errors import BadInput, BadStore, TooSlow, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from contextlib import AbstractContextManager

    from fleet.adapters.home.bell import Bell
    from fleet.adapters.stores.rows import Row

LOCK = 0x464C4545
LEAST_CONNECTIONS = 8  # a server keeps five, and its requests need some
ROOM_SECONDS = 30.0  # to wait for a connection, when all that are allowed are in use
DIALECT = {
    "key": "BIGINT PRIMARY KEY",
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "bytewise": ' COLLATE "C"',
    "generated": "STORED",
}
# A writer that is stopped in the middle holds everybody up: the server ends it after a while.
SESSION = {
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "30s",
    "statement_timeout": "60s",
}
ANSWER_SECONDS = 65.0  # for an answer to one statement, which the server would have ended by then
NETWORK = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def open_url(
    url: str,
    bell: Bell | None,
    taken: Callable[[str], bool] | None,
    *,
    schema: str = "fleet",
    most: int = 0,
) -> SqlStore:
    """Its tables are in `schema`; this process opens at `most` so many connections, 0: any number."""
    return SqlStore(Postgres(url, schema=schema, bell=bell, most=most), taken=taken)


class _Unreachable(Unavailable):
    """Its message names the address and the user, which are not for everybody."""

    public = "The store cannot be reached."


class Stalled(psycopg.OperationalError):
    """The server said nothing for too long: whether it did what it was asked is not known."""


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


class Postgres:
    """Commits take turns under one advisory lock, held to the end of the transaction.

    So event numbers appear in order, counts of blockers are never made from a stale snapshot, and
    both dialects have one semantics. Agents take minutes; a thousand commits a second are plenty.
    """

    def __init__(
        self, url: str, *, schema: str = "fleet", bell: Bell | None = None, most: int = 0
    ) -> None:
        self._url = url
        self._room = _room(most)
        self._has_room = False
        self._schema = schema
        self._bell = bell
        self._until, self._seconds = math.inf, 0.0  # see `limit`
        self._is_writing = False
        self._channel = f"fleet_{schema}"[:63]
        self._connect()
        self._migrate()

    def _connect(self) -> None:
        self._listening = False
        self._rung = False
        self._take_room()
        try:
            self._db = _Line.connect(self._url, autocommit=True, **NETWORK)  # type: ignore[arg-type]  # all of them are str or int
            self._db.until, self._timeout = self._until, 0.0
            for name, value in {**SESSION, "search_path": self._schema}.items():
                self._db.execute("SELECT set_config(%s, %s, false)", [name, value])
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
        if self._version() == LATEST:
            return
        with self.writing(wake=False):
            if not self.rows(SCHEMA_THERE, {"schema": self._schema}):  # else needs no permission
                self._db.execute(pg.SQL("CREATE SCHEMA {}").format(pg.Identifier(self._schema)))
            for number in range(self._version() + 1, LATEST + 1):
                for statement in split_script(migration(number, DIALECT)):
                    self._db.execute(statement.encode())
                carry_over(number, "postgres", self._execute)
            self._db.execute(
                "INSERT INTO meta VALUES ('schema', %s) "
                "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                [str(LATEST)],
            )

    def _version(self) -> int:
        """Raise `BadStore`, having changed nothing, when this schema is not one for us."""
        tables = {name for (name,) in self.rows(TABLES_THERE, {"schema": self._schema})}
        if not tables:
            return 0
        if not {"meta", "task", "event", "counter"} <= tables:
            raise BadStore(
                f"The schema '{self._schema}' at {_without_secret(self._url)} "
                "belongs to another program.",
                fix="Give fleet a database of its own.",
            )
        ((version,),) = self.rows("SELECT value FROM meta WHERE key = 'schema'", {})
        if int(version) > LATEST:
            raise BadStore(
                f"The store at {_without_secret(self._url)} was written by a newer fleet "
                f"(schema {version}; this one knows {LATEST}). Nothing was changed.",
                fix="Upgrade fleet on this machine.",
            )
        return int(version)

    @contextmanager
    def writing(self, *, wake: bool) -> Iterator[None]:
        with self._explained():
            db, outer = self._usable(), not self._is_writing
            self._is_writing = True
            try:
                with db.transaction():
                    db.execute(
                        "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [LOCK, self._schema]
                    )
                    yield
                    if wake:  # heard when, and only if, the transaction commits
                        db.execute("SELECT pg_notify(%s, '')", [self._channel])
            finally:
                self._is_writing = not outer

    def together(self, *, alone: bool) -> AbstractContextManager[None]:  # noqa: ARG002  # they always may
        return self.writing(wake=True)  # a transaction in a transaction is a savepoint

    def change(self, sql: str, values: Mapping[str, Any]) -> int:
        return self._execute(sql, values).rowcount

    def _execute(self, sql: str, values: Mapping[str, Any] | None = None) -> psycopg.Cursor[Row]:
        return self._db.execute(_translated(sql), values)

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        with self._explained():
            return self._usable().execute(_translated(sql), values).fetchall()

    def now(self) -> int:
        ((now,),) = self.rows(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", {}
        )
        return int(now)

    def limit(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds if seconds else math.inf
        self._db.until = self._until

    def wait(self, timeout: float) -> None:
        """For a commit anywhere since the last wait, or for a keeper on this host."""
        with self._explained():
            db = self._usable()
            if not self._listening:
                db.execute(pg.SQL("LISTEN {}").format(pg.Identifier(self._channel)))
                self._listening = True
                return  # what was committed before could not be heard: look once more
            until = time.monotonic() + timeout
            while not self._rung and (rest := until - time.monotonic()) > 0:
                if self._bell_rang(rest):
                    return
                db.execute("SELECT 1")  # takes in what has arrived
        self._rung = False

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
        self._db.close()
        self._leave_room()

    def _take_room(self) -> None:
        if self._room is None or self._has_room:
            return
        if not self._room.acquire(timeout=ROOM_SECONDS):
            raise Unavailable(
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
            if self._is_writing:
                raise Unavailable("The store did not answer: the connection was lost.")
            self._connect()
        if self._seconds and self._seconds != self._timeout:
            milliseconds = str(
                max(1, round(self._seconds * 1000))
            )  # the server ends what nobody waits for
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


SCHEMA_THERE = "SELECT 1 FROM pg_namespace WHERE nspname = :schema"
TABLES_THERE = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = :schema"


@cache
def _translated(sql: str) -> bytes:
    return re.sub(r"(?<!:):([a-z]\w*)", r"%(\1)s", sql).encode()


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _without_secret(url: str) -> str:
    return re.sub(r"://([^:@/]*):[^@]*@", r"://\1:…@", url)
