"""The store on PostgreSQL: each write is one call, and no writer waits for another's client."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fleet.adapters.stores.postgres.session import SEQUENCES, Session, Stale
from fleet.adapters.stores.rows import (
    changed,
    event,
    event_values,
    searched,
    seq_of,
    write,
    written,
)
from fleet.adapters.stores.sql import Queries, in_turn, record_of
from fleet.domain.event import Kind
from fleet.domain.message import Message, MessageKind
from fleet.domain.run import Host, Progress, Slots
from fleet.domain.task import Task, TaskState
from fleet.ports import Offer, Put, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fleet.adapters.home.bell import Bell
    from fleet.adapters.stores.rows import Write
    from fleet.domain.event import Event
    from fleet.domain.run import Run
    from fleet.domain.schedule import Claim
    from fleet.ports import Change, Record

_dumps = json.JSONEncoder(separators=(",", ":")).encode
COLUMNS = "number, type, version, task, run, actor, at, data"
EVENTS = "(:after, :before, :task, CAST(:kinds AS text[]), :newest, :limit)"
# what only the host itself, or a person who looks, wants to know
QUIET = (Progress, Host)
FORGOTTEN = 60_000_000  # microseconds after which an offer to a host that is gone is removed


def open_url(
    url: str,
    bell: Bell | None,
    taken: Callable[[str], bool] | None,
    *,
    schema: str = "fleet",
    most: int = 0,
    copying: bool = False,
    **_others: object,
) -> PostgresStore:
    """Its tables are in `schema`; this process opens at `most` so many connections, 0: any number.

    `copying`: it may be half-copied.
    """
    session = Session(url, schema=schema, bell=bell, most=most, copying=copying)
    return PostgresStore(session, taken=taken)


def peek_url(url: str, *, schema: str = "fleet") -> dict[str, str] | None:
    """What it says of itself; None: there is no store."""
    session = Session(url, schema=schema, migrate=False)
    try:
        return session.peek()
    finally:
        session.close()


class PostgresStore(Queries):
    _db: Session

    def __init__(self, session: Session, *, taken: Callable[[str], bool] | None = None) -> None:
        super().__init__(taken=taken)
        self._db = session
        self._offered: set[str] = set()  # the tasks that this host was shown last
        self._tidied = 0  # when offers to hosts that are gone were removed

    @contextmanager
    def together(self, *, alone: bool = True) -> Iterator[None]:
        with self._db.together(alone=alone):
            yield

    def commit(self, changes: Sequence[Change], events: Sequence[Event]) -> list[Record]:
        writes = sorted((write(change) for change in changes), key=_lock_order)
        quiet = not events and all(
            isinstance(c.record, QUIET) for c in changes if isinstance(c, Put)
        )
        try:
            ((is_due,),) = self._db.call("commit", _payload(writes, events, quiet=quiet))
        except Stale as stale:
            raise changed(writes[stale.number].record) from None
        if not quiet:
            self._db.wake(is_due=is_due)
        return [written(c.record) for c in changes if isinstance(c, Put)]

    def claim(self, claims: Sequence[Claim]) -> list[Run]:
        if not claims:
            return []
        names = sorted({name for one in claims for name in one.room})
        number_of = {name: n for n, name in enumerate(names, 1)}  # PostgreSQL counts from 1
        given: dict[str, Any] = {
            "names": names,
            "claims": [_claim_part(n, one, number_of) for n, one in enumerate(claims)],
        }
        if self._offered - {one.task.id for one in claims}:
            given["left"] = claims[0].run.host  # the rest is free for others
        self._offered = set()
        at = max(one.run.claimed_at for one in claims)
        if at - self._tidied > FORGOTTEN:
            self._tidied = at
            given["old"] = at - FORGOTTEN
        numbers = [n for (n,) in self._db.call("claim", _dumps(given))]
        made = [written(claims[n].run) for n in numbers if n >= 0]
        if made:
            self._db.wake(is_due=numbers[-1] < 0)
        return made

    def offer(self, host: str, *, now: int, limit: int, names: Sequence[str] = ()) -> Offer:
        given = {"host": host, "limit": limit, "now": now, "names": list(names)}
        rows = self._db.call("offer", _dumps(given))
        tasks = (record_of(Task, version, body) for is_task, version, body in rows if is_task)
        slots = (record_of(Slots, version, body) for is_task, version, body in rows if not is_task)
        offer = Offer(in_turn(tasks, limit), {row.id: row for row in slots})
        self._offered = {task.id for task in offer.tasks}
        return offer

    def index_words(self, limit: int = 1000) -> int:
        rows = self._db.rows(self._sql["unsearched"], {"limit": limit})
        if not rows:
            return 0
        words = [
            {"seq": seq, "version": version, "words": searched(record_of(Task, version, body))}
            for seq, version, body in rows
        ]
        ((count,),) = self._db.call("index_words", _dumps(words))
        return int(count)

    def _next(self, kind: str) -> int:
        self._db.must_write()
        if kind in SEQUENCES:
            ((last,),) = self._db.rows(f"SELECT nextval('{self._db.schema}.id_{kind}')", {})
        else:
            ((last,),) = self._db.rows(self._sql["new_id"], {"kind": kind})
        return int(last)

    def totals(self) -> Totals:
        (row,) = self._db.rows(self._sql["totals"], {})
        sql = f"SELECT last_value - 1 + is_called::int FROM {self._db.schema}.id_m"  # noqa: S608  # nosec B608  # names of ours
        ((messages,),) = self._db.rows(sql, {})
        return Totals(*row)._replace(messages=int(messages))

    def events(
        self,
        *,
        after: int = 0,
        before: int = 0,
        task: str = "",
        limit: int = 1000,
        newest: bool = False,
    ) -> list[Event]:
        events = self._events(after, before=before, task=task, limit=limit, newest=newest)
        return events[::-1] if newest else events

    def events_of_kinds(self, kinds: Sequence[str], *, after: int, limit: int) -> list[Event]:
        return self._events(after, kinds=[str(kind) for kind in kinds], limit=limit)

    def _events(self, after: int, *, limit: int, **given: Any) -> list[Event]:
        """Behind the horizon: see `functions.sql`."""
        values = {"before": 0, "task": "", "kinds": None, "newest": False, **given}
        sql = f"SELECT {COLUMNS} FROM {self._db.function('events')}{EVENTS}"  # noqa: S608  # nosec B608  # names of ours
        rows = self._db.rows(sql, {**values, "after": after, "limit": limit})
        return [event(row) for row in rows]


TABLE_ORDER = {"task": 0, "run": 1}  # then the others, by name: two commits lock in one order


def _lock_order(each: Write) -> tuple[int, str, int, str]:
    table = each.statement.rpartition("_")[0]
    return TABLE_ORDER.get(table, 2), table, each.values["seq"], each.record.id


def _payload(writes: Sequence[Write], events: Sequence[Event], *, quiet: bool) -> str:
    """What the function `commit` is given."""
    puts = [w for w in writes if isinstance(w.record, Task) and _is_put(w)]
    asking = [w.record for w in writes if _is_question(w.record)]
    edited = {fact.task for fact in events if fact.type == Kind.TASK_EDITED}
    recount = {seq_of(question.task) for question in asking if isinstance(question, Message)}
    known = {w.values["seq"] for w in writes if isinstance(w.record, Task) and w.record.version}
    fresh = [w.values["seq"] for w in puts if not w.record.version or w.record.id in edited]
    parts: dict[str, Any] = {
        "writes": [_as_json(each) for each in writes],
        "tasks": [_task_part(w.record, w.values) for w in puts if isinstance(w.record, Task)],
        "locks": sorted(known | recount),
        "recount": sorted(recount),
        "words": fresh,
        "events": [event_values(fact) for fact in events],
        "quiet": quiet,
    }
    needed = {"writes", "tasks", "locks", "recount"}
    return _dumps({name: part for name, part in parts.items() if part or name in needed})


def _claim_part(n: int, claim: Claim, number_of: dict[str, int]) -> dict[str, Any]:
    parts = {
        "task": write(Put(claim.task)).values,
        "run": write(Put(claim.run)).values,
        "event": event_values(claim.event),
    }
    flat = {f"{part}_{k}": value for part, values in parts.items() for k, value in values.items()}
    places = [number_of[name] for name in claim.room]
    return {"n": n, "places": places, "most": list(claim.room.values()), **flat}


def _is_put(each: Write) -> bool:
    return not each.statement.endswith("_version")


def _is_question(record: Record) -> bool:
    return isinstance(record, Message) and record.kind is MessageKind.QUESTION


def _as_json(each: Write) -> dict[str, Any]:
    absent = {"absent": True} if not (_is_put(each) or each.record.version) else {}
    return {"do": each.statement, **each.values, **absent}


def _task_part(task: Task, values: dict[str, Any]) -> dict[str, Any]:
    after = [seq_of(need) for need in task.after]
    done = task.state is TaskState.DONE
    return {"seq": values["seq"], "done": done, "needs": values["needs"], "after": after}
