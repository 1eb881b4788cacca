"""What agents remember from one run to the next, found by key or by words."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import NotFound
from fleet.domain.event import Kind
from fleet.domain.limits import Items, Name, OneOf, Rows, TextLimit
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import keep, must_be_self, new_entry, query_of, the_team
from fleet.operations.shared.pages import pages

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

TYPES = ("fact", "decision", "pattern", "error")

Key = Annotated[str, TextLimit(200, some=True, what="key")]
Tags = Annotated[tuple[Annotated[str, TextLimit(200, some=True, what="tag")], ...], Items(50)]
Value = Annotated[str, TextLimit(100_000, some=True, what="value")]
Query = Annotated[str, TextLimit(1000, some=True, what="query", example="Give a word of it.")]
MemoryType = Annotated[str, OneOf(TYPES, "type of memory")]
AnyMemoryType = Annotated[str, OneOf(("", *TYPES), "type of memory")]


@dataclass(frozen=True, slots=True)
class MemoryRow:
    id: str
    agent: str
    team: str
    key: str
    value: str
    type: str
    tags: tuple[str, ...]
    at: Time
    changed_at: Time


@dataclass(frozen=True, slots=True)
class StoreMemory(Request[MemoryRow]):
    """Replaces the old value of the key. `agent`: the caller's own name, or empty."""

    key: Key
    value: Value
    type: MemoryType = "fact"
    tags: Tags = ()
    agent: Name = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class Recall(Request[MemoryRow]):
    key: Name
    agent: Name = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class SearchMemory(Request[tuple[MemoryRow, ...]]):
    """Finds memories of the whole team with every word of the query in key, value or tags."""

    query: Query
    agent: Name = ""
    type: AnyMemoryType = ""
    team: Name = ""
    before: str = ""
    limit: Rows = 20


@dataclass(frozen=True, slots=True)
class ListMemory(Request[tuple[MemoryRow, ...]]):
    agent: Name = ""
    type: AnyMemoryType = ""
    team: Name = ""
    before: str = ""
    limit: Rows = 50


def store(context: Context, request: StoreMemory) -> MemoryRow:
    must_be_self(context, request.agent)
    agent, team = context.actor.name, the_team(context, request.team, Permission.MEMORY)
    name, value, now = request.key.strip(), request.value.strip(), context.store.now()
    tags = list(dict.fromkeys(tag.strip() for tag in request.tags))
    body = {"key": name, "value": value, "type": request.type, "tags": tags, "changed_at": now}
    text = " ".join((name, value, *tags))
    entry = context.store.entry(EntryKind.MEMORY, team, _key(agent, name))
    if entry is None:
        entry = new_entry(context, EntryKind.MEMORY, team=team, key=_key(agent, name), owner=agent)
        entry = replace(entry, at=now)
    elif {**entry.body, "changed_at": now} == body:
        return _row(entry)
    return _row(keep(context, replace(entry, text=text, body=body), Kind.MEMORY_STORED))


def _key(agent: str, name: str) -> str:
    """The key of the entry: unique to this agent, whatever characters are in either name."""
    return json.dumps([agent, name])


def recall(context: Context, request: Recall) -> MemoryRow:
    agent = request.agent.strip() or context.actor.name
    team = the_team(context, request.team, Permission.READ)
    entry = context.store.entry(EntryKind.MEMORY, team, _key(agent, request.key.strip()))
    if entry is None:
        raise NotFound(
            f"{agent[:60]} has no memory under '{request.key[:60]}'.",
            fix="`fleet memory search WORD` looks for a word of it.",
        )
    return _row(entry)


def search(context: Context, request: SearchMemory) -> tuple[MemoryRow, ...]:
    listing = ListMemory(request.agent, request.type, request.team, request.before, request.limit)
    return _matching(context, listing, request.query.strip())


def list_memory(context: Context, request: ListMemory) -> tuple[MemoryRow, ...]:
    return _matching(context, request, "")


def _matching(context: Context, request: ListMemory, text: str) -> tuple[MemoryRow, ...]:
    query = query_of(
        context,
        EntryKind.MEMORY,
        team=request.team,
        owner=request.agent.strip(),
        text=text,
        limit=request.limit,
        before=request.before,
    )
    rows = (_row(entry) for page in pages(context.store.entries, query) for entry in page)
    return tuple(islice((row for row in rows if request.type in {"", row.type}), request.limit))


def _row(entry: Entry) -> MemoryRow:
    body = entry.body
    return MemoryRow(
        id=entry.id,
        agent=entry.owner,
        team=entry.team,
        key=body["key"],
        value=body["value"],
        type=body["type"],
        tags=tuple(body["tags"]),
        at=entry.at,
        changed_at=body["changed_at"],
    )


_P, _READ = Permission.MEMORY, Permission.READ
OPERATIONS = (
    Operation("memory.store", StoreMemory, _P, store, "Store a memory under a key."),
    Operation("memory.recall", Recall, _READ, recall, "Recall a memory by its key."),
    Operation("memory.search", SearchMemory, _READ, search, "Search the memories."),
    Operation("memory.list", ListMemory, _READ, list_memory, "List the memories."),
)
