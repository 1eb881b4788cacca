"""Records and events as rows: the columns they are found by, and the body that is all of them."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from fleet.adapters.stores.codec import VERSION, encode
from fleet.domain.data import NamedTuple
from fleet.domain.entry import Entry, words_of
from fleet.domain.errors import Conflict
from fleet.domain.event import Event, Kind
from fleet.domain.message import Message, order_of
from fleet.domain.run import Host, Progress, Run, Slots
from fleet.domain.task import Task
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.ports import Change, EntryQuery, MessageQuery, Record, TaskQuery

Row = tuple[Any, ...]

TABLES: dict[type, str] = {
    Task: "task",
    Run: "run",
    Message: "message",
    Progress: "progress",
    Host: "host",
    Slots: "slots",
    Entry: "entry",
}
NAMED = {"host", "slots"}  # found by their id; the others by the number in it
RUN_BITS = 20
NO_TASK = -2  # the task of a message that is about none; what is no id is -1


def seq_of(record_id: str) -> int:
    """t-31: 31. t-31.2: 31 * 2^20 + 2. Something that is no id of ours: -1."""
    number, _, run = record_id.rpartition("-")[2].partition(".")
    try:
        seq = (int(number) << RUN_BITS) + int(run) if run else int(number)
    except ValueError:
        return -1
    return seq if 0 <= seq < 1 << 63 else -1


def seq_in(table: str, record_id: str) -> int:
    """By which it is found and put in order."""
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


def _add_columns(record: Record, values: dict[str, Any]) -> None:
    match record:
        case Task():
            values["state"] = record.state.value
            values["priority"] = record.spec.priority
            values["created_at"] = record.created_at
            values["not_before"] = record.tally.not_before
            by_hand = record.paused or record.join is not None or record.spec.assignee
            values["held"] = int(bool(by_hand))
            values["needs"] = " ".join(record.after)
            values["project"] = key(record.project)
            values["team"] = key(record.team)
            values["parent"] = record.parent
        case Run():
            values["live"] = int(record.live)
            values["host"] = record.host
        case Message():
            values["task"] = seq_of(record.task) if record.task else NO_TASK
            values["kind"] = record.kind.value
            values["state"] = record.state.value
            values["team"] = key(record.team) or None
            values["topic"] = key(record.topic) if record.team else None
        case Entry():
            values["kind"] = record.kind.value
            values["team"] = key(record.team)
            values["key"] = key(record.key)
            values["owner"] = key(record.owner)
            values["until"] = record.until
            values["words"] = key(record.text.casefold())


def written(record: Record) -> Record:
    """The record as it is in the store now. `dataclasses.replace` takes twice as long."""
    kind: Any = type(record)
    get, at = _getter(kind)
    values = [*get(record)]
    values[at] += 1
    made: Record = kind(*values)
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


def where(query: TaskQuery) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {"limit": query.limit}
    terms = []
    for column in ("project", "team", "parent"):
        if wanted := getattr(query, column):
            terms.append(f"{column} = :{column}")
            values[column] = key(wanted)
    if query.states:
        names = {f"s{n}": str(state) for n, state in enumerate(query.states)}
        terms.append(f"state IN ({', '.join(':' + name for name in names)})")
        values |= names
    if query.before:
        terms.append("seq > :seq" if query.oldest_first else "seq < :seq")
        values["seq"] = seq_of(query.before)
    return ("WHERE " + " AND ".join(terms) if terms else ""), values


def where_entry(query: EntryQuery) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {"limit": query.limit, "kind": query.kind}
    terms = ["kind = :kind"]
    for column in ("team", "owner"):
        if wanted := getattr(query, column):
            terms.append(f"{column} = :{column}")
            values[column] = key(wanted)
    for n, word in enumerate(words_of(query.text)):
        terms.append(f"words LIKE :w{n} ESCAPE '!'")
        values[f"w{n}"] = f"%{_literal(key(word))}%"
    if query.counting_at:
        terms.append("(until = 0 OR until > :at)")
        values["at"] = query.counting_at
    _page("entry", query.before, terms, values)
    return "WHERE " + " AND ".join(terms), values


def where_message(query: MessageQuery) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {"limit": query.limit, "kind": query.kind}
    terms = ["kind = :kind"]
    for column in ("task", "team", "topic", "state"):
        if wanted := getattr(query, column):
            terms.append(f"{column} = :{column}")
            values[column] = seq_of(wanted) if column == "task" else key(wanted)
    _page("message", query.before, terms, values)
    return "WHERE " + " AND ".join(terms), values


def _page(table: str, before: str, terms: list[str], values: dict[str, Any]) -> None:
    if before:
        terms.append("seq < :seq")
        values["seq"] = seq_in(table, before)


def _literal(word: str) -> str:
    """For LIKE: what it would take for a sign of its own stands for itself."""
    return word.replace("!", "!!").replace("%", "!%").replace("_", "!_")


_dumps = json.JSONEncoder(separators=(",", ":")).encode


def event_values(event: Event) -> dict[str, Any]:
    return {
        "type": str(event.type),
        "version": event.version,
        "task": event.task,
        "run": event.run,
        "actor": key(event.actor),
        "at": event.at,
        "data": _dumps(event.data) if event.data else "{}",
    }


def event(row: Row) -> Event:
    number, kind, version, task, run, actor, at, data = row
    return Event(Kind(kind), task, actor, at, run, json.loads(data), version, number)


def changed(record: Record) -> Conflict:
    return Conflict(
        f"{TABLES[type(record)]} {record.id} changed since it was read.", fix="Try again."
    )
