"""All that a store has, as rows that any other kind of store takes in: `fleet store copy`.

A record goes as its id, version and JSON; the columns that it is found by are made anew where it
arrives. While a store is being filled, `meta` has the mark of the copy: nobody opens it meanwhile,
and only who set the mark writes to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.stores.migrations import COPYING
from fleet.adapters.stores.rows import NAMED, TABLES, load_values, seq_of
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused
from fleet.domain.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from fleet.adapters.stores.rows import Row, Write
    from fleet.adapters.stores.sql import Holder

PAGE = 500  # rows that are read and written at once
PIECES = 4  # of which each may have megabytes
FIRST = -1 << 63  # before every number
MODULUS = 1 << 256
EVENT = "event"
COUNTER = "counter"
META = "meta"
EVENT_COLUMNS = "number, type, version, task, run, actor, at, data"
KINDS: dict[str, Any] = {table: kind for kind, table in TABLES.items()}


class Batch(NamedTuple):
    """Rows of one table, in its order. Of a record: id, version and JSON."""

    table: str
    rows: Sequence[Row]


class Begin(NamedTuple):
    """Take an empty store, or one whose copy was interrupted, and set the mark."""

    mark: str


class Load(NamedTuple):
    mark: str
    table: str
    rows: Sequence[Row]


class Recount(NamedTuple):
    """Count what these tasks wait for, once all tasks are there."""

    mark: str
    first: int
    last: int


class Finish(NamedTuple):
    mark: str


Step = Begin | Load | Recount | Finish


class TableTally(NamedTuple):
    """How many rows a table has, and the sum of their digests, whatever their order."""

    rows: int = 0
    digest: int = 0

    def plus(self, rows: Iterable[Row]) -> TableTally:
        from hashlib import sha256  # noqa: PLC0415  # every command loads this module

        count, digest = self
        for row in rows:
            text = "\0".join(map(str, row)).encode("utf-8", "surrogatepass")
            digest += int.from_bytes(sha256(text).digest(), "big")
            count += 1
        return TableTally(count, digest % MODULUS)


def batches(db: Holder) -> Iterator[Batch]:
    """All rows in batches: records, then events, then the counters of ids."""
    for table in TABLES.values():
        order, first = ("id", "") if table in NAMED else ("seq", FIRST)
        sql = (
            f"SELECT {order}, id, version, body FROM {table}"  # noqa: S608  # nosec B608  # names of ours
            f" WHERE {order} > :after ORDER BY {order} LIMIT :limit"
        )
        for rows in _pages(db, sql, first, PIECES if table == "piece" else PAGE):
            yield Batch(table, [row[1:] for row in rows])
    sql = f"SELECT {EVENT_COLUMNS} FROM event WHERE number > :after ORDER BY number LIMIT :limit"  # noqa: S608  # nosec B608  # names of ours
    for rows in _pages(db, sql, 0, PAGE):
        yield Batch(EVENT, rows)
    if kept := db.rows("SELECT key, value FROM meta WHERE key = 'first_event'", {}):
        yield Batch(META, kept)
    if counters := [pair for pair in sorted(db.counters().items()) if pair[1]]:
        yield Batch(COUNTER, counters)


def _pages(db: Holder, sql: str, after: str | int, limit: int) -> Iterator[list[Row]]:
    while rows := db.rows(sql, {"after": after, "limit": limit}):
        yield rows
        after = rows[-1][0]


def tallies(db: Holder) -> dict[str, TableTally]:
    counted: dict[str, TableTally] = {}
    for batch in batches(db):
        counted[batch.table] = counted.get(batch.table, TableTally()).plus(batch.rows)
    return counted


def prepared(step: Step) -> Callable[[Holder], None]:
    """What is to be done inside a transaction; what takes long is done before it.

    That raises `Refused` when the store is not empty, or the mark is another's.
    """
    if isinstance(step, Begin):
        return lambda db: _begin(db, step.mark)
    act = _act(step)

    def checked(db: Holder) -> None:
        if _mark(db) != step.mark:
            raise Refused(
                "Another `fleet store copy` has begun to fill the same store.",
                fix="Wait for it, or run this one again.",
            )
        act(db)

    return checked


def _act(step: Load | Recount | Finish) -> Callable[[Holder], None]:
    match step:
        case Recount(_, first, last):
            return lambda db: _recount(db, first, last)
        case Finish():
            return _finish
        case Load(_, table, rows):
            if table in KINDS:
                writes = [load_values(KINDS[table], *row) for row in rows]
                return lambda db: _load_records(db, table, writes)
            return lambda db: _load(db, table, rows)


def _recount(db: Holder, first: int, last: int) -> None:
    db.change(RECOUNT, {"first": first, "last": last})


def _finish(db: Holder) -> None:
    db.end_of_events()
    db.change("DELETE FROM meta WHERE key = :key", {"key": COPYING})


def _mark(db: Holder) -> str:
    rows = db.rows("SELECT value FROM meta WHERE key = :key", {"key": COPYING})
    return str(rows[0][0]) if rows else ""


def _begin(db: Holder, mark: str) -> None:
    tables = (*TABLES.values(), EVENT)
    if _mark(db):
        for table in (*tables, "dep", "task_unsearched"):
            db.change(f"DELETE FROM {table}", {})  # noqa: S608  # nosec B608  # names of ours
        db.change("DELETE FROM meta WHERE key = 'first_event'", {})
        db.change("DELETE FROM counter WHERE substr(kind, 1, 1) <> '@'", {})
    elif full := next((t for t in tables if db.rows(f"SELECT 1 FROM {t} LIMIT 1", {})), ""):  # noqa: S608  # nosec B608  # names of ours
        raise Refused(
            f"The target is not empty: it has rows in `{full}`.",
            fix="Name an empty database, bucket prefix or file as TO.",
            code="not_empty",
        )
    db.change(SET_MARK, {"key": COPYING, "value": mark})


def _load(db: Holder, table: str, rows: Sequence[Row]) -> None:
    if table == COUNTER:
        known = db.counters()
        db.set_counters({kind: max(last, known.get(kind, 0)) for kind, last in rows})
        return
    if table == META:
        db.change_many(SET_MARK, [{"key": key, "value": value} for key, value in rows])
        return
    names = EVENT_COLUMNS.split(", ")
    db.change_many(EVENT_LOAD, [dict(zip(names, row, strict=True)) for row in rows])


def _load_records(db: Holder, table: str, writes: Sequence[Write]) -> None:
    db.change_many(_insert(table), [one.values for one in writes])
    tasks = [(one.values["seq"], one.record) for one in writes if isinstance(one.record, Task)]
    if not tasks:
        return
    db.change_many(_statement("unsearched_insert"), [{"seq": seq} for seq, _ in tasks])
    needs = [{"task": seq, "needs": seq_of(n)} for seq, task in tasks for n in task.after]
    db.change_many(_statement("dep_insert"), needs)


def _statement(name: str) -> str:
    from fleet.adapters.stores.sql import statements  # noqa: PLC0415  # it imports this module

    return statements()[name]


def _insert(table: str) -> str:
    """Insert like a new record, but with the version that it had."""
    return _statement(f"{table}_insert").replace(":id, 1,", ":id, :version,")


SET_MARK = """
INSERT INTO meta (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""
EVENT_LOAD = """
INSERT INTO event (number, type, version, task, run, actor, at, data)
VALUES (:number, :type, :version, :task, :run, :actor, :at, :data)
"""
RECOUNT = """
UPDATE task SET blockers =
    (SELECT count(*) FROM dep LEFT JOIN task AS need ON need.seq = dep.needs
      WHERE dep.task = task.seq AND (need.state IS NULL OR need.state <> 'done'))
  + (SELECT count(*) FROM message
      WHERE message.task = task.seq AND message.kind = 'question' AND message.state = 'open')
WHERE seq >= :first AND seq <= :last
"""
