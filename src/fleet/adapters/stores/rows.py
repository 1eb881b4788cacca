"""Records and events as rows: the columns they are found by, and the body that is all of them."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.adapters.stores.codec import VERSION, decode, dumps, encode
from fleet.domain.data import NamedTuple
from fleet.domain.entry import Entry
from fleet.domain.entry import words_of as words_of_entry
from fleet.domain.errors import BadStore, Conflict
from fleet.domain.event import Event, Kind
from fleet.domain.hosts.piece import Piece
from fleet.domain.landing.landing import GateResult, Landing, Train
from fleet.domain.message import Message, MessageKind, MessageState, order_of
from fleet.domain.run import Host, Progress, Run, Slots
from fleet.domain.schedule import HOLDS, NEED_SOMEBODY, hold_of
from fleet.domain.task import Mode, Task, TaskState
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.schedule import Hold
    from fleet.ports import (
        Change,
        EntryQuery,
        LandingQuery,
        MessageQuery,
        Record,
        TaskQuery,
        TaskSearch,
    )

Row = tuple[Any, ...]
R = TypeVar("R", bound="Record")

TABLES: dict[type, str] = {
    Task: "task",
    Run: "run",
    Message: "message",
    Progress: "progress",
    Host: "host",
    Slots: "slots",
    Entry: "entry",
    Landing: "landing",
    Train: "train",
    GateResult: "gate_result",
    Piece: "piece",
}
NAMED = {
    "host",
    "slots",
    "train",
    "gate_result",
    "piece",
}  # found by their id; the others by the number in it
RUN_BITS = 20
NO_TASK = -2  # the task of a message that is about none; what is no id is -1


def seq_of(record_id: str) -> int:
    """t-31: 31. t-31.2: 31 * 2^20 + 2. Something that is no id of ours: -1."""
    digits = record_id.rpartition("-")[2]
    try:
        if "." in digits:
            number, _, run = digits.partition(".")
            seq = (int(number) << RUN_BITS) + int(run)
        else:
            seq = int(digits)
    except ValueError:
        return -1
    return seq if 0 <= seq < 1 << 63 else -1


def seq_in(table: str, record_id: str) -> int:
    """The number by which a row is found and put in order."""
    return order_of(record_id) if table == "message" else seq_of(record_id)


class Write(NamedTuple):
    """One change, encoded before the lock is taken: nobody waits for our JSON."""

    record: Record
    statement: str
    values: dict[str, Any]


def write(change: Change) -> Write:
    record = change.record
    table = TABLES[type(record)]
    seq = seq_in(table, record.id)
    values = {"id": record.id, "version": record.version, "seq": seq}
    if not isinstance(change, Put):
        return Write(record, f"{table}_version", values)
    if seq_of(record.id) < 0 and table not in NAMED:
        raise ValueError(f"'{record.id}' is not the id of a {table}")
    values["body"] = encode(record)
    _add_columns(record, values)
    return Write(record, f"{table}_update" if record.version else f"{table}_insert", values)


def load_values(kind: type, record_id: str, version: int, body: str) -> Write:
    """A record as another store had it, with its columns; its JSON stays as it is."""
    try:
        record: Record = decode(kind, version, body)
    except (ValueError, TypeError) as error:
        raise BadStore(
            f"{TABLES[kind]} {record_id} cannot be read by this version of fleet ({error}).",
            fix="If a newer fleet wrote it, upgrade fleet on this machine.",
        ) from error
    table = TABLES[kind]
    values = {"id": record_id, "version": version, "seq": seq_in(table, record_id), "body": body}
    _add_columns(record, values)
    return Write(record, f"{table}_insert", values)


def _add_columns(record: Record, values: dict[str, Any]) -> None:
    match record:
        case Task():
            values["state"] = record.state.value
            values["priority"] = record.spec.priority
            values["created_at"] = record.created_at
            values["not_before"] = record.tally.not_before
            values["held"] = int(hold_of(record))
            values["needs"] = " ".join(record.after)
            values["project"] = key(record.project)
            values["team"] = key(record.team)
            values["parent"] = record.parent
            values["attended"] = int(record.spec.mode != Mode.QUEUED and record.join is None)
            values["assignee"] = key(record.spec.assignee)
            values["backwards"] = key(record.spec.branch[::-1])
        case Run():
            values["live"] = int(record.live)
            values["host"] = record.host
        case Message():
            values["task"] = seq_of(record.task) if record.task else NO_TASK
            values["kind"] = record.kind.value
            values["state"] = record.state.value
            values["team"] = key(record.team) or None
            values["topic"] = key(record.topic) if record.team else None
            values["type"] = record.data.get("type") if record.kind is MessageKind.POST else None
        case Landing():
            values["train"] = key(record.train)
            values["task"] = record.task
            values["team"] = key(record.team)
            values["pending"] = int(record.open)
        case Entry():
            values["kind"] = record.kind.value
            values["team"] = key(record.team)
            values["key"] = key(record.key)
            values["owner"] = key(record.owner)
            values["until"] = record.until
            values["words"] = key(record.text.casefold())


def searched(task: Task) -> list[str]:
    """The words by which it is searched."""
    from fleet.domain.search import MOST_SEARCHED, words_of  # noqa: PLC0415  # start-up time

    return words_of(f"{task.title}\n{task.prompt[:MOST_SEARCHED]}")


def where_search(query: TaskSearch, row: str) -> tuple[str, dict[str, Any]]:
    """`row`: what a row of the index calls the number of its task."""
    values: dict[str, Any] = {"limit": query.limit}
    terms = []
    for column in ("team", "project"):
        if value := getattr(query, column):
            terms.append(f"{column} = :{column}")
            values[column] = key(value)
    if query.task:
        terms.append(f"{row} = :task")
        values["task"] = seq_of(query.task)
    if query.since:
        terms.append("created_at >= :since")
        values["since"] = query.since
    return "".join(f" AND {term}" for term in terms), values


def written(record: R) -> R:
    """The record as it is in the store now. `dataclasses.replace` takes twice as long."""
    kind: Any = type(record)
    get, at = _getter(kind)
    values = [*get(record)]
    values[at] += 1
    made: R = kind(*values)
    return made


@cache
def _getter(kind: Any) -> tuple[Callable[[Any], tuple[Any, ...]], int]:
    names = [f.name for f in fields(kind)]
    return attrgetter(*names), names.index(VERSION)


def key(text: str) -> str:
    """Text as a column can hold it; a path may have bytes that are no UTF-8, a name a NUL."""
    if text.isascii() and "\0" not in text:
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return json.dumps(text) if "\0" in text else text


def select_tasks(query: TaskQuery) -> tuple[str, dict[str, Any]]:
    """The statement. However many tasks there are, an index has those that it is about.

    Each state and standing is read for itself, because only then an index has it in the order of `seq`.
    """
    terms, values = _task_terms(query)
    values["limit"] = query.limit
    order = f"ORDER BY seq {'ASC' if query.oldest_first else 'DESC'} LIMIT :limit"
    states = query.states or (EVERY_STATE if query.project or query.team else ())
    branches = [term for standing in query.may_be for term in MAY_BE[standing]]
    if query.is_held:
        branches = list(map(_with_hold, NEED_SOMEBODY))
    if not branches and not _is_narrow(query) and len(states) > 1:
        branches = [f"state = {mark}" for mark in _marks(values, "s", states).split(", ")]
    elif query.states:
        terms.append(f"state IN ({_marks(values, 's', query.states)})")
    if len(branches) < 2:
        where = _where(_with(branches[0], terms, query) if branches else terms)
        return f"SELECT version, body FROM task {where} {order}", values  # noqa: S608  # nosec B608  # built from constants
    parts = " UNION ".join(
        f"SELECT * FROM (SELECT seq FROM task {_where(_with(branch, terms, query))} {order}) AS part{n}"  # noqa: S608  # nosec B608  # as above
        for n, branch in enumerate(branches)
    )
    some = f"SELECT seq FROM ({parts}) AS every {order}"  # noqa: S608  # nosec B608  # as above
    return f"SELECT version, body FROM task WHERE seq IN ({some}) {order}", values  # noqa: S608  # nosec B608  # as above


ENDING = """
SELECT seq FROM task WHERE backwards <> '' AND backwards > :end AND backwards < :beyond
ORDER BY backwards LIMIT :most
"""
HIDDEN = " || ''"  # from planners: the column has an index that would read too many
EVERY_STATE = tuple(str(state) for state in TaskState)
MAX_ENDS = 1000  # branches that are looked at because they end alike: more are no name for one


def _with_hold(hold: Hold) -> str:
    """The condition, as the index of `held` has it."""
    return f"held > 0 AND held = {hold:d}"


ASKING = "seq IN (SELECT task FROM message WHERE asks IS NOT NULL)"
MAY_BE = {  # by standing: the tasks of each are what one or several indexes have
    **{standing: tuple(map(_with_hold, holds)) for standing, holds in HOLDS.items()},
    "ready": ("state = 'open' AND ready = 1",),
    "asking": (f"{ASKING} AND state || '' = 'open'",),
    "waiting": ("needs <> '' AND state || '' = 'open'",),
    "postponed": ("seq IN (SELECT seq FROM task WHERE ready = 1 AND not_before > 0)",),
    "landing": ("seq IN (SELECT CAST(substr(task, 3) AS BIGINT) FROM landing WHERE pending = 1)",),
}


def _with(branch: str, terms: Sequence[str], query: TaskQuery) -> list[str]:
    """Many tasks may be ready, few of them in a project or a team: that has an index for its open ones."""
    if branch in MAY_BE["ready"] and not _is_narrow(query._replace(may_be=())):
        return [*(term.replace(HIDDEN, "") for term in terms), branch]
    return [*terms, branch]


def _is_narrow(query: TaskQuery) -> bool:
    """Whether it is about few tasks in any state."""
    return bool(
        query.parent
        or query.assignee
        or query.branches
        or query.branch_end
        or query.at_work
        or query.is_held
        or query.may_be
    )


def _task_terms(query: TaskQuery) -> tuple[list[str], dict[str, Any]]:
    values: dict[str, Any] = {}
    terms = []
    # an expression, for a planner may prefer the index of a large team and read all of it
    hidden = HIDDEN if _is_narrow(query) else ""
    for column in ("project", "team", "parent", "assignee"):
        if value := getattr(query, column):
            terms.append(f"{column}{hidden if column in {'project', 'team'} else ''} = :{column}")
            values[column] = key(value)
    limited = (column for column in ("parent", "assignee") if column in values)
    terms += [f"{column} <> ''" for column in limited]  # as their indexes are
    if query.branches:
        backwards = [key(branch[::-1]) for branch in query.branches]
        terms.append(f"backwards <> '' AND backwards IN ({_marks(values, 'b', backwards)})")
    if query.branch_end:
        terms.append(f"seq IN ({ENDING})")
        values["end"] = key(query.branch_end[::-1])
        values["beyond"] = values["end"] + "\U0010ffff"
        values["most"] = MAX_ENDS
    if query.at_work:
        terms.append("at_work = 1")
    if query.before:
        terms.append("seq > :seq" if query.oldest_first else "seq < :seq")
        values["seq"] = seq_of(query.before)
    return terms, values


def _marks(values: dict[str, Any], prefix: str, words: Sequence[str]) -> str:
    """Add these words to the values, and return their parameters."""
    names = {f"{prefix}{n}": value for n, value in enumerate(words)}
    values |= names
    return ", ".join(f":{name}" for name in names)


def _where(terms: Sequence[str]) -> str:
    return "WHERE " + " AND ".join(terms) if terms else ""


def where_entry(query: EntryQuery) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {"limit": query.limit, "kind": query.kind}
    terms = ["kind = :kind"]
    # as for tasks: an owner and a member have an index of their own
    hidden = " || ''" if query.owner or query.text_is or query.namesake else ""
    for column in ("team", "owner"):
        if value := getattr(query, column):
            terms.append(f"{column}{hidden if column == 'team' else ''} = :{column}")
            values[column] = key(value)
    if query.namesake:
        kinds = "kind IN ('enrolment', 'member', 'token')"  # as the index has them
        terms.append(f"{kinds} AND lower(owner) = :namesake")
        values["namesake"] = key(_lower(query.namesake))
    if query.text_is:
        terms.append("kind = 'member' AND words = :words")
        values["words"] = key(query.text_is.casefold())
    for n, word in enumerate(words_of_entry(query.text)):
        terms.append(f"words LIKE :w{n} ESCAPE '!'")
        values[f"w{n}"] = f"%{_literal(key(word))}%"
    if query.counting_at:
        terms.append("(until = 0 OR until > :at)")
        values["at"] = query.counting_at
    _page("entry", query.before, terms, values)
    return "WHERE " + " AND ".join(terms), values


def _lower(name: str) -> str:
    """Lower the letters of ASCII alone, as SQLite does."""
    return "".join(c.lower() if c.isascii() else c for c in name)


def where_landing(query: LandingQuery) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {"limit": query.limit}
    terms = ["pending = 1"] if query.open_only else []
    for column in ("train", "task", "team"):
        if value := getattr(query, column):
            terms.append(f"{column} = :{column}")
            values[column] = key(value)
    _page("landing", query.before, terms, values)
    return _where(terms), values


def where_message(query: MessageQuery) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {"limit": query.limit, "kind": query.kind}
    terms = ["kind = :kind"]
    for column in ("task", "team", "topic", "state", "type"):
        if value := getattr(query, column):
            terms.append(f"{column} = :{column}")
            values[column] = seq_of(value) if column == "task" else key(value)
    if query.topic:
        terms.append("topic IS NOT NULL")
    if query.state == MessageState.OPEN:
        terms.append("state = 'open'")
    if query.kind == MessageKind.HANDOFF and not query.team:
        terms.append("kind = 'handoff'")
    if query.kind == MessageKind.POST:
        terms.append("kind = 'post'")
    _page("message", query.before, terms, values)
    return "WHERE " + " AND ".join(terms), values


def _page(table: str, before: str, terms: list[str], values: dict[str, Any]) -> None:
    if before:
        terms.append("seq < :seq")
        values["seq"] = seq_in(table, before)


def _literal(word: str) -> str:
    """Escape the characters that LIKE would take for wildcards."""
    return word.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def event_values(event: Event) -> dict[str, Any]:
    return {
        "type": str(event.type),
        "version": event.version,
        "task": event.task,
        "run": event.run,
        "actor": key(event.actor),
        "at": event.at,
        "data": dumps(event.data) if event.data else "{}",
    }


def event(row: Row) -> Event:
    number, kind, version, task, run, actor, at, data = row
    return Event(Kind(kind), task, actor, at, run, json.loads(data), version, number)


def changed(record: Record) -> Conflict:
    return Conflict(
        f"{TABLES[type(record)]} {record.id} changed since it was read.", fix="Try again."
    )
