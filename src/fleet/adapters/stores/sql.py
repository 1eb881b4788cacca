"""The store: what is read alike in both databases, and how SQLite writes. `commit` is the only write."""

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
    searched,
    select_tasks,
    seq_in,
    seq_of,
    where_entry,
    where_landing,
    where_message,
    where_search,
    write,
    written,
)
from fleet.domain.entry import Entry
from fleet.domain.errors import BadStore, NotFound
from fleet.domain.event import Kind
from fleet.domain.hosts.piece import Piece
from fleet.domain.landing.landing import GateResult, Landing, Train
from fleet.domain.message import Message, MessageKind, order_of
from fleet.domain.run import Host, Progress, Run, Slots
from fleet.domain.schedule import admit
from fleet.domain.task import ENDED, Task, TaskState
from fleet.ports import Offer, Put, TaskQuery, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from fleet.adapters.stores.forgetting import Step as Forgetting
    from fleet.adapters.stores.rows import Row, Write
    from fleet.adapters.stores.transfer import Step
    from fleet.domain.event import Event
    from fleet.domain.schedule import Claim
    from fleet.ports import Change, EntryQuery, LandingQuery, MessageQuery, Record, TaskSearch

R = TypeVar(
    "R", Task, Run, Message, Progress, Host, Slots, Entry, Landing, Train, GateResult, Piece
)


class Holder(Protocol):
    """What a database is asked to do for it, inside a write transaction."""

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Row]: ...

    def change(self, sql: str, values: Mapping[str, Any]) -> int: ...

    def change_many(self, sql: str, values: Sequence[Mapping[str, Any]]) -> None: ...

    def forget(self, seq: int, words: list[str]) -> None:
        """The words by which a task was searched are its no more."""

    def counters(self) -> dict[str, int]:
        """By kind, the last id that was given out."""

    def set_counters(self, last: Mapping[str, int]) -> None: ...

    def end_of_events(self) -> None:
        """The next event gets a number above those that are there."""

    def one_moment(self) -> AbstractContextManager[None]:
        """What is read in here is of one moment, no matter who writes meanwhile."""


class Reading(Holder, Protocol):
    """What reading needs of SQLite or PostgreSQL."""

    def writing(self, *, wake: bool) -> AbstractContextManager[None]:
        """A transaction for `change`."""

    def together(self, *, alone: bool) -> AbstractContextManager[None]:
        """One transaction around many, each of which may fail `alone`; else see `Spoiled`."""

    def now(self) -> int: ...

    @property
    def may_write(self) -> bool:
        """False: a newer fleet has upgraded the store, and this one may only read it."""

    found_words: str  # the condition that `:query` matches a row of `task_words`, and its number
    word_row: str

    def match(self, words: Sequence[str]) -> str:
        """The `:query`."""

    def limit(self, seconds: float) -> None: ...

    def wait(self, timeout: float) -> None: ...

    def close(self) -> None: ...


class Dialect(Reading, Protocol):
    """A database in which one writer at a time does one statement after another."""

    def writing(self, *, wake: bool) -> AbstractContextManager[None]:
        """One write transaction, alone: no other writer is between its begin and its commit.

        With `wake`, those who wait learn of it.
        """

    def index(self, seq: int, words: list[str]) -> None:
        """Inside `writing`: the words by which this task is searched."""


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


class Queries:
    """Everything that is read, alike in both databases.

    `taken(id)`: no row has this id, but it must not be used again.
    """

    _db: Reading

    def __init__(self, *, taken: Callable[[str], bool] | None = None) -> None:
        self._taken = taken or _nobodys
        self._sql = statements()

    def now(self) -> int:
        return self._db.now()

    def transfer(self, step: Step) -> None:
        """One step of filling this store with what another has: see `transfer.py`."""
        from fleet.adapters.stores.transfer import prepared  # noqa: PLC0415  # start-up time

        act = prepared(step)
        with self._db.together(alone=False):
            act(self._db)

    def first_event(self) -> int:
        from fleet.adapters.stores.forgetting import first_event  # noqa: PLC0415  # start-up time

        return first_event(self._db)

    def forget_events(self, *, upto: int, limit: int) -> int:
        from fleet.adapters.stores.forgetting import DropEvents  # noqa: PLC0415  # start-up time

        ((_, last),) = self._db.rows(self._sql["event_numbers"], {})
        first = self.first_event()
        beyond = min(first + limit, upto + 1, last)
        if beyond <= first:
            return 0
        sql = "SELECT DISTINCT task FROM event WHERE number >= :first AND number < :beyond"
        names = [name for (name,) in self._db.rows(sql, {"first": first, "beyond": beyond})]
        tasks = self.tasks_by_id([name for name in names if name])
        keep = [task.id for task in tasks.values() if task.state not in ENDED]
        self._forget(DropEvents(first, beyond, keep))
        return int(beyond - first)

    def forget_tasks(self, tasks: Sequence[Task]) -> list[str]:
        from fleet.adapters.stores.forgetting import DropTasks  # noqa: PLC0415  # start-up time

        return self._forget(DropTasks([(task.id, task.version) for task in tasks])) if tasks else []

    def _forget(self, step: Forgetting) -> list[str]:
        from fleet.adapters.stores.forgetting import forget  # noqa: PLC0415  # start-up time

        with self._db.together(alone=False):
            return forget(self._db, step)

    @contextmanager
    def one_moment(self) -> Iterator[Holder]:
        """Read the whole store as it is at one moment."""
        with self._db.one_moment():
            yield self._db

    def new_id(self, kind: str) -> str:
        while True:
            last = self._next(kind)
            if not self._taken(f"{kind}-{last}"):
                return f"{kind}-{last}"

    def _next(self, kind: str) -> int:
        """The number of a new id, which nobody was given."""
        raise NotImplementedError

    def index_words(self, limit: int = 1000) -> int:
        raise NotImplementedError

    def task(self, task_id: str) -> Task:
        return self._one(Task, task_id)

    def tasks(self, query: TaskQuery) -> list[Task]:
        return self._many(Task, *select_tasks(query))

    def search_tasks(self, query: TaskSearch) -> list[Task]:
        if not query.words:
            return []
        while self._db.may_write and self.index_words():
            pass
        row, terms = self._db.word_row, self._db.found_words
        more, values = where_search(query, row)
        sql = (
            f"SELECT task.version, task.body FROM task_words JOIN task ON task.seq = {row}"  # noqa: S608  # nosec B608  # built from constants
            f" WHERE {terms}{more} ORDER BY {row} DESC LIMIT :limit"
        )
        return self._many(Task, sql, {**values, "query": self._db.match(query.words)})

    def tasks_by_id(self, ids: Sequence[str]) -> dict[str, Task]:
        return self._by_id(Task, ids)

    def dependents(self, task_id: str) -> list[str]:
        return [row[0] for row in self._db.rows(self._sql["dependents"], {"seq": seq_of(task_id)})]

    def waiting(self, ids: Sequence[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for start in range(0, len(ids), 500):  # SQLite binds at most 999 in older builds
            values = {f"i{n}": seq_of(i) for n, i in enumerate(ids[start : start + 500])}
            marks = ", ".join(f":{name}" for name in values)
            sql = self._sql["waiting"].replace("{ids}", marks)
            counts |= {f"t-{needs}": count for needs, count in self._db.rows(sql, values)}
        return counts

    def counts(self, *, team: str = "", project: str = "") -> dict[str, int]:
        given = {"team": team, "project": project}
        terms = " AND ".join(f"{name} = :{name}" for name, value in given.items() if value)
        sql = self._sql["counts"].replace(
            "GROUP BY", f"WHERE {terms} GROUP BY" if terms else "GROUP BY"
        )
        return dict(self._db.rows(sql, given))

    def totals(self) -> Totals:
        return Totals(*self._db.rows(self._sql["totals"], {})[0])

    def offer(self, host: str, *, now: int, limit: int, names: Sequence[str] = ()) -> Offer:  # noqa: ARG002  # one writer at a time: nobody is in another's way for long
        return Offer(self.candidates(now=now, limit=limit), self.slots(names) if names else {})

    def candidates(self, *, now: int, limit: int) -> list[Task]:
        values = {"now": now, "limit": limit}
        rows = self._db.rows(self._sql["candidates"], values)
        first = [record_of(Task, version, body) for version, body, _ in rows]
        if rows and not rows[0][2]:
            return first
        due = self._many(Task, self._sql["candidates_due"], values)
        return in_turn([*first, *due], limit)

    def candidates_after(
        self, after: Task | None, *, team: str = "", now: int, limit: int
    ) -> list[Task]:
        priority, at, seq = _order(after) if after else (-1, -1, -1)
        values: dict[str, Any] = {"priority": priority, "at": at, "seq": seq}
        values |= {"now": now, "limit": limit, "team": key(team)}
        names = ("candidates_of_team",) if team else ("candidates_page", "candidates_page_due")
        pages = (self._many(Task, self._sql[name], values) for name in names)
        return in_turn([task for page in pages for task in page], limit)

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
        return self._many(Message, self._sql["questions_of_team" if team else "questions"], values)

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

    def landing(self, landing_id: str) -> Landing:
        return self._one(Landing, landing_id)

    def landings(self, query: LandingQuery) -> list[Landing]:
        terms, values = where_landing(query)
        sql = f"SELECT version, body FROM landing {terms} ORDER BY seq DESC LIMIT :limit"  # noqa: S608  # nosec B608  # built from constants
        return self._many(Landing, sql, values)

    def trains(self) -> dict[str, Train]:
        return {t.id: t for t in self._many(Train, self._sql["train_all"], {})}

    def gate_results(self, ids: Sequence[str]) -> dict[str, GateResult]:
        return self._by_id(GateResult, ids)

    def pieces(self, commits: Sequence[str]) -> dict[str, Piece]:
        return self._by_id(Piece, commits)

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
        self,
        *,
        after: int = 0,
        before: int = 0,
        task: str = "",
        limit: int = 1000,
        newest: bool = False,
    ) -> list[Event]:
        name = "events" + ("_of" if task else "") + ("_newest" if newest else "")
        values = {"after": after, "before": before, "limit": limit, "task": task}
        sql = self._sql[name]
        if before:
            sql = sql.replace("ORDER BY", "AND number < :before ORDER BY")
        events = [event(row) for row in self._db.rows(sql, values)]
        return events[::-1] if newest else events

    def events_of_kinds(self, kinds: Sequence[str], *, after: int, limit: int) -> list[Event]:
        values: dict[str, Any] = {"after": after, "limit": limit}
        values |= {f"k{n}": str(kind) for n, kind in enumerate(kinds)}
        marks = ", ".join(f":k{n}" for n in range(len(kinds)))
        sql = self._sql["events"].replace("ORDER BY", f"AND type IN ({marks}) ORDER BY")
        return [event(row) for row in self._db.rows(sql, values)]

    def number_before(self, at: int) -> int:
        ((first, last),) = self._db.rows(self._sql["event_numbers"], {})
        low, high = first - 1, last  # all up to `low` are earlier, `high` and on may be
        while low < high:
            middle = (low + high + 1) // 2
            ((number, earlier),) = self._db.rows(
                self._sql["event_from"], {"number": middle, "at": at}
            )
            low, high = (number, high) if earlier else (low, middle - 1)
        return max(0, int(low))

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
        self, kind: type[R], terms: str, column: str, among: Sequence[str] | Sequence[int]
    ) -> list[R]:
        """The records whose column has one of these values."""
        records: list[R] = []
        for start in range(0, len(among), 500):  # SQLite binds at most 999 in older builds
            values = {f"i{n}": value for n, value in enumerate(among[start : start + 500])}
            marks = ", ".join(f":{name}" for name in values)
            sql = f"SELECT version, body FROM {TABLES[kind]} WHERE {terms}{column} IN ({marks})"  # noqa: S608  # nosec B608  # names we made
            records += self._many(kind, sql, values)
        return records

    def _many(self, kind: type[R], sql: str, values: Mapping[str, Any]) -> list[R]:
        return [record_of(kind, version, body) for version, body in self._db.rows(sql, values)]


class SqlStore(Queries):
    """A store with one writer at a time."""

    _db: Dialect

    def __init__(self, dialect: Dialect, *, taken: Callable[[str], bool] | None = None) -> None:
        super().__init__(taken=taken)
        self._db = dialect
        self._last: dict[str, int] | None = None  # ids used so far in one transaction

    def open_questions(self, task_ids: Sequence[str]) -> list[Message]:
        """Most lists have none, which one short look tells."""
        if not task_ids or not self._db.rows(self._sql["any_question"], {}):
            return []
        return super().open_questions(task_ids)

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
            old = self._words_before(events)
            stale: set[int] = set()  # tasks whose blockers must be counted anew
            for each in writes:
                stale.update(self._apply(each))
                if isinstance(each.record, Task) and each.statement != "task_version":
                    self._note_words(each.record, each.values["seq"], old.get(each.record.id))
            for seq in stale:
                self._db.change(self._sql["task_recount"], {"seq": seq})
            for values in rows:
                self._db.change(self._sql["event_insert"], values)
        return [written(c.record) for c in changes if isinstance(c, Put)]

    def claim(self, claims: Sequence[Claim]) -> list[Run]:
        if not claims:
            return []
        with self.together():
            names = sorted({name for one in claims for name in one.room})
            ready = self._ready([seq_of(one.task.id) for one in claims])
            runs = self.runs_by_id([one.run.id for one in claims])
            admitted, slots = admit(claims, ready, runs, self.slots(names) if names else {})
            if admitted:
                records = [record for one in admitted for record in (one.task, one.run)]
                changes = [Put(record) for record in (*records, *slots)]
                self.commit(changes, [one.event for one in admitted])
        return [written(one.run) for one in admitted]

    def _ready(self, seqs: Sequence[int]) -> dict[str, int]:
        """The versions, by id, of those of these tasks that wait for nothing."""
        versions: dict[str, int] = {}
        for start in range(0, len(seqs), 500):  # SQLite binds at most 999 in older builds
            values = {f"i{n}": seq for n, seq in enumerate(seqs[start : start + 500])}
            marks = ", ".join(f":{name}" for name in values)
            versions |= dict(self._db.rows(self._sql["ready"].replace("{ids}", marks), values))
        return versions

    def _words_before(self, events: Sequence[Event]) -> dict[str, list[str]]:
        """The words of tasks whose title or prompt is being changed."""
        edited = [event.task for event in events if event.type == Kind.TASK_EDITED]
        return {name: searched(task) for name, task in self.tasks_by_id(edited).items()}

    def _note_words(self, task: Task, seq: int, old: list[str] | None) -> None:
        """Note whose words to index before the next search, so that adding a task costs next to nothing."""
        if task.version and (old is None or old == searched(task)):
            return
        if old is not None and not self._db.change(self._sql["unsearched_delete"], {"seq": seq}):
            self._db.forget(seq, old)
        self._db.change(self._sql["unsearched_insert"], {"seq": seq})

    def index_words(self, limit: int = 1000) -> int:
        if not self._db.rows(self._sql["unsearched"], {"limit": 1}):
            return 0
        with self._db.writing(wake=False):
            rows = self._db.rows(self._sql["unsearched"], {"limit": limit})
            for seq, version, body in rows:
                self._db.index(seq, searched(record_of(Task, version, body)))
                self._db.change(self._sql["unsearched_delete"], {"seq": seq})
        return len(rows)

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
        """Write the task's row and what it waits for; return the tasks that this may free or hold."""
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

    def _depend(self, seq: int, needs: set[int]) -> None:
        stored = {need for (need,) in self._db.rows(self._sql["dep_of"], {"seq": seq})}
        for need in needs - stored:
            self._db.change(self._sql["dep_insert"], {"task": seq, "needs": need})
        for need in stored - needs:
            self._db.change(self._sql["dep_delete"], {"task": seq, "needs": need})

    def _next(self, kind: str) -> int:
        numbers = self._last
        if numbers is not None and kind in numbers:
            numbers[kind] += 1
            return numbers[kind]
        with self._db.writing(wake=False):
            ((last,),) = self._db.rows(self._sql["new_id"], {"kind": kind})
        if numbers is not None:
            numbers[kind] = int(last)
        return int(last)


def _nobodys(_id: str) -> bool:
    return False


def record_of(kind: type[R], version: int, body: str) -> R:
    try:
        return decode(kind, version, body)
    except (ValueError, TypeError) as error:
        raise BadStore(
            f"The store holds a {TABLES[kind]} that this version of fleet cannot read ({error}): {body[:80]}",
            fix="If a newer fleet wrote it, upgrade fleet on this machine.",
        ) from error


def in_turn(tasks: Iterable[Task], limit: int) -> list[Task]:
    """The first of them. One may have moved between two reads, and be there twice."""
    return sorted({task.id: task for task in tasks}.values(), key=_order)[:limit]


def _order(task: Task) -> tuple[int, int, int]:
    return task.spec.priority, task.created_at, seq_of(task.id)


def split_script(script: str) -> Iterable[str]:
    """The statements of a migration, one by one."""
    text = re.sub(r"^--.*$", "", script, flags=re.MULTILINE)
    return (s.strip() for s in text.split(";") if s.strip())
