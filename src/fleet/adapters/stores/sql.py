"""The store: one semantics in two dialects. `commit` is the only write."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fleet.adapters.stores.codec import decode
from fleet.adapters.stores.rows import (
    NAMED,
    RUN_BITS,
    TABLES,
    changed,
    event,
    event_values,
    key,
    select_tasks,
    seq_in,
    seq_of,
    where_entry,
    where_message,
    write,
    written,
)
from fleet.domain.entry import Entry
from fleet.domain.errors import BadStore, NotFound
from fleet.domain.message import Message, MessageKind, order_of
from fleet.domain.run import Host, Progress, Run, Slots
from fleet.domain.task import Task, TaskState
from fleet.ports import Put, TaskQuery, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from fleet.adapters.stores.rows import Row, Write
    from fleet.domain.event import Event
    from fleet.ports import Change, EntryQuery, MessageQuery, Record

R = TypeVar("R", Task, Run, Message, Progress, Host, Slots, Entry)


class Dialect(Protocol):
    """What differs between SQLite and PostgreSQL."""

    def writing(self, *, wake: bool) -> AbstractContextManager[None]:
        """One write transaction, alone: no other writer is between its begin and its commit.

        With `wake`, those who wait learn of it.
        """

    def together(self, *, alone: bool) -> AbstractContextManager[None]:
        """One transaction around many, each of which may fail `alone`; else see `Spoiled`."""

    def change(self, sql: str, values: Mapping[str, Any]) -> int:
        """Inside `writing`: the number of rows that it changed."""

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Row]: ...

    def now(self) -> int: ...

    def limit(self, seconds: float) -> None: ...

    def wait(self, timeout: float) -> None: ...

    def close(self) -> None: ...


@cache
def statements() -> dict[str, str]:
    """The named statements of `queries.sql`, and those that every table has."""
    text = Path(__file__).with_name("queries.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    queries = dict(zip(parts[::2], (p.strip() for p in parts[1::2]), strict=True))
    for table in TABLES.values():
        where = "id = :id" if table in NAMED else "seq = :seq AND id = :id"
        queries[f"{table}_one"] = f"SELECT version, body FROM {table} WHERE {where}"  # noqa: S608  # nosec B608  # names of ours
        queries[f"{table}_version"] = f"SELECT version FROM {table} WHERE {where}"  # noqa: S608  # nosec B608  # as above
    return queries


class SqlStore:
    """`taken(id)`: no row has this id, but it must not be used again."""

    def __init__(self, dialect: Dialect, *, taken: Callable[[str], bool] | None = None) -> None:
        self._db = dialect
        self._taken = taken or _nobodys
        self._sql = statements()
        self._last: dict[str, int] | None = None  # ids used so far in one transaction

    @contextmanager
    def together(self, *, alone: bool = True) -> Iterator[None]:
        """No other writer is between its begin and its end, so it counts ids by itself meanwhile."""
        with self._db.together(alone=alone):
            self._last = {}
            try:
                yield
                for kind, last in self._last.items():
                    self._db.change(self._sql["set_id"], {"kind": kind, "last": last})
            finally:
                self._last = None

    def commit(self, changes: Sequence[Change], events: Sequence[Event]) -> list[Record]:
        writes = [write(change) for change in changes]
        rows = [event_values(e) for e in events]
        with self._db.writing(wake=True):
            stale: set[int] = set()  # tasks whose blockers must be counted anew
            for each in writes:
                stale.update(self._apply(each))
            for seq in stale:
                self._db.change(self._sql["task_recount"], {"seq": seq})
            for values in rows:
                self._db.change(self._sql["event_insert"], values)
        return [written(c.record) for c in changes if isinstance(c, Put)]

    def _apply(self, each: Write) -> Iterable[int]:
        if each.statement.endswith("_version"):
            self._insist(each)
            return ()
        match each.record:
            case Task() as task:
                return self._put_task(task, each)
            case Message(kind=MessageKind.QUESTION) as question:
                self._put(each)
                return (seq_of(question.task),)
        self._put(each)
        return ()

    def _insist(self, each: Write) -> None:
        expected = [(each.record.version,)] if each.record.version else []
        if self._db.rows(self._sql[each.statement], each.values) != expected:
            raise changed(each.record)

    def _put(self, each: Write) -> None:
        if self._db.change(self._sql[each.statement], each.values) != 1:
            raise changed(each.record)

    def _put_task(self, task: Task, each: Write) -> Iterable[int]:
        """Its row and what it waits for; returns whom that may free or hold."""
        seq = each.values["seq"]
        done = task.state is TaskState.DONE
        if task.version and self._db.change(self._sql["task_update"], each.values) == 1:
            return self._waiting_for(seq) if done else ()
        self._put(each._replace(statement="task_update_any") if task.version else each)
        if not (task.version or task.after or done):
            return ()
        self._depend(seq, {seq_of(need) for need in task.after})
        return (seq, *self._waiting_for(seq))

    def _waiting_for(self, seq: int) -> list[int]:
        return [waiter for (waiter,) in self._db.rows(self._sql["waiting_for"], {"seq": seq})]

    def _depend(self, seq: int, wanted: set[int]) -> None:
        known = {need for (need,) in self._db.rows(self._sql["dep_of"], {"seq": seq})}
        for need in wanted - known:
            self._db.change(self._sql["dep_insert"], {"task": seq, "needs": need})
        for need in known - wanted:
            self._db.change(self._sql["dep_delete"], {"task": seq, "needs": need})

    def now(self) -> int:
        return self._db.now()

    def new_id(self, kind: str) -> str:
        while True:
            last = self._next(kind)
            if not self._taken(f"{kind}-{last}"):
                return f"{kind}-{last}"

    def _next(self, kind: str) -> int:
        known = self._last
        if known is not None and kind in known:
            known[kind] += 1
            return known[kind]
        with self._db.writing(wake=False):
            ((last,),) = self._db.rows(self._sql["new_id"], {"kind": kind})
        if known is not None:
            known[kind] = int(last)
        return int(last)

    def task(self, task_id: str) -> Task:
        return self._one(Task, task_id)

    def tasks(self, query: TaskQuery) -> list[Task]:
        return self._many(Task, *select_tasks(query))

    def tasks_by_id(self, ids: Sequence[str]) -> dict[str, Task]:
        return self._by_id(Task, ids)

    def dependents(self, task_id: str) -> list[str]:
        return [row[0] for row in self._db.rows(self._sql["dependents"], {"seq": seq_of(task_id)})]

    def counts(self) -> dict[str, int]:
        return dict(self._db.rows(self._sql["counts"], {}))

    def totals(self) -> Totals:
        return Totals(*self._db.rows(self._sql["totals"], {})[0])

    def candidates(self, *, now: int, limit: int) -> list[Task]:
        values = {"now": now, "limit": limit}
        rows = self._db.rows(self._sql["candidates"], values)
        first = [_record(Task, version, body) for version, body, _ in rows]
        if rows and not rows[0][2]:
            return first
        due = self._many(Task, self._sql["candidates_due"], values)
        both = {
            task.id: task for task in (*first, *due)
        }  # a task may have moved between the two reads
        return sorted(both.values(), key=_order)[:limit]

    def run(self, run_id: str) -> Run:
        return self._one(Run, run_id)

    def runs(self, task_id: str) -> list[Run]:
        first = seq_of(task_id) << RUN_BITS
        values = {"first": first, "last": first + (1 << RUN_BITS) - 1}
        return self._many(Run, self._sql["runs"], values)

    def live_runs(self, *, host: str = "") -> list[Run]:
        name = "live_runs_of" if host else "live_runs"
        return self._many(Run, self._sql[name], {"host": host})

    def message(self, message_id: str) -> Message:
        return self._one(Message, message_id)

    def messages(self, task_id: str, *, newest: int = 0) -> list[Message]:
        values = {"task": seq_of(task_id), "limit": newest}
        if newest:
            return self._many(Message, self._sql["messages_newest"], values)[::-1]
        return self._many(Message, self._sql["messages"], values)

    def open_questions(self, task_ids: Sequence[str]) -> list[Message]:
        terms = "kind = 'question' AND state = 'open' AND "
        questions = self._among(Message, terms, "task", [seq_of(i) for i in task_ids])
        return sorted(questions, key=lambda question: order_of(question.id))

    def questions(self, *, team: str = "", after: str = "", limit: int = 100) -> list[Message]:
        values = {"team": key(team), "after": order_of(after) if after else 0, "limit": limit}
        return self._many(Message, self._sql["questions"], values)

    def open_messages(self, kind: str, *, limit: int = 100) -> list[Message]:
        values = {"kind": kind, "limit": limit}
        return self._many(Message, self._sql["open_messages"], values)

    def find_messages(self, query: MessageQuery) -> list[Message]:
        terms, values = where_message(query)
        sql = f"SELECT version, body FROM message {terms} ORDER BY seq DESC LIMIT :limit"  # noqa: S608  # nosec B608  # built from constants
        return self._many(Message, sql, values)

    def entry(self, kind: str, team: str, name: str) -> Entry | None:
        values = {"kind": kind, "team": key(team), "key": key(name)}
        return next(iter(self._many(Entry, self._sql["entry_of"], values)), None)

    def entries(self, query: EntryQuery) -> list[Entry]:
        terms, values = where_entry(query)
        sql = f"SELECT version, body FROM entry {terms} ORDER BY seq DESC LIMIT :limit"  # noqa: S608  # nosec B608  # built from constants
        return self._many(Entry, sql, values)

    def prune(self, kind: str, team: str, *, now: int) -> None:
        with self._db.writing(wake=False):
            self._db.change(self._sql["entry_prune"], {"kind": kind, "team": key(team), "now": now})

    def entry_by_id(self, entry_id: str) -> Entry:
        return self._one(Entry, entry_id)

    def runs_by_id(self, run_ids: Sequence[str]) -> dict[str, Run]:
        return self._by_id(Run, run_ids)

    def progress(self, run_ids: Sequence[str]) -> dict[str, Progress]:
        return self._by_id(Progress, run_ids)

    def slots(self, names: Sequence[str] = ()) -> dict[str, Slots]:
        if names:
            return self._by_id(Slots, names)
        return {s.id: s for s in self._many(Slots, self._sql["slots_all"], {})}

    def hosts(self) -> dict[str, Host]:
        return {h.id: h for h in self._many(Host, self._sql["host_all"], {})}

    def events(
        self, *, after: int = 0, task: str = "", limit: int = 1000, newest: bool = False
    ) -> list[Event]:
        name = "events" + ("_of" if task else "") + ("_newest" if newest else "")
        values = {"after": after, "limit": limit, "task": task}
        events = [event(row) for row in self._db.rows(self._sql[name], values)]
        return events[::-1] if newest else events

    def changed_at(self, task_ids: Sequence[str]) -> dict[str, int]:
        """Each is one step into the index of `event`, however many events there are."""
        newest = "SELECT at FROM event WHERE task = ids.task ORDER BY number DESC LIMIT 1"
        times: dict[str, int] = {}
        for start in range(0, len(task_ids), 500):  # SQLite binds at most 999 in older builds
            values = {f"i{n}": i for n, i in enumerate(task_ids[start : start + 500])}
            marks = ", ".join(f"(:{name})" for name in values)
            sql = f"WITH ids(task) AS (VALUES {marks}) SELECT task, ({newest}) FROM ids"  # noqa: S608  # nosec B608  # names we made
            times |= {task: at for task, at in self._db.rows(sql, values) if at is not None}
        return times

    def limit(self, seconds: float) -> None:
        self._db.limit(seconds)

    def wait(self, timeout: float) -> None:
        self._db.wait(timeout)

    def close(self) -> None:
        self._db.close()

    def _one(self, kind: type[R], record_id: str) -> R:
        table = TABLES[kind]
        values = {"id": record_id, "seq": seq_in(table, record_id)}
        records = self._many(kind, self._sql[f"{table}_one"], values)
        if not records:
            raise NotFound(f"There is no {table} {record_id}.")
        return records[0]

    def _by_id(self, kind: type[R], ids: Sequence[str]) -> dict[str, R]:
        table = TABLES[kind]
        if table in NAMED:
            records = self._among(kind, "", "id", ids)
        else:
            records = self._among(kind, "", "seq", [seq_of(i) for i in ids])
        by_id = {r.id: r for r in records}
        return {i: by_id[i] for i in ids if i in by_id}

    def _among(
        self, kind: type[R], terms: str, column: str, wanted: Sequence[str] | Sequence[int]
    ) -> list[R]:
        """Those whose column has one of these values."""
        records: list[R] = []
        for start in range(0, len(wanted), 500):  # SQLite binds at most 999 in older builds
            values = {f"i{n}": value for n, value in enumerate(wanted[start : start + 500])}
            marks = ", ".join(f":{name}" for name in values)
            sql = f"SELECT version, body FROM {TABLES[kind]} WHERE {terms}{column} IN ({marks})"  # noqa: S608  # nosec B608  # names we made
            records += self._many(kind, sql, values)
        return records

    def _many(self, kind: type[R], sql: str, values: Mapping[str, Any]) -> list[R]:
        return [_record(kind, version, body) for version, body in self._db.rows(sql, values)]


def _nobodys(_id: str) -> bool:
    return False


def _record(kind: type[R], version: int, body: str) -> R:
    try:
        return decode(kind, version, body)
    except (ValueError, TypeError) as error:
        raise BadStore(
            f"The store holds a {TABLES[kind]} that this version of fleet cannot read ({error}): {body[:80]}",
            fix="If a newer fleet wrote it, upgrade fleet on this machine.",
        ) from error


def _order(task: Task) -> tuple[int, int, int]:
    return task.spec.priority, task.created_at, seq_of(task.id)


def split_script(script: str) -> Iterable[str]:
    """The statements of a migration, one by one."""
    text = re.sub(r"^--.*$", "", script, flags=re.MULTILINE)
    return (s.strip() for s in text.split(";") if s.strip())
