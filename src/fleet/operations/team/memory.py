"""What agents remember from one run to the next, found by key or by words."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import BadInput, NotFound, nearest
from fleet.domain.event import Kind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import keep, must_be_self, new_entry, query_of, the_team
from fleet.operations.shared.names import clean_text, some_text
from fleet.operations.shared.pages import pages

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

TYPES = ("fact", "decision", "pattern", "error")
MOST_KEY, MOST, MOST_QUERY, MOST_TAGS = 200, 100_000, 1000, 50


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

    key: str
    value: str
    type: str = "fact"
    tags: tuple[str, ...] = ()
    agent: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class Recall(Request[MemoryRow]):
    key: str
    agent: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class SearchMemory(Request[tuple[MemoryRow, ...]]):
    """Finds memories of the whole team with every word of the query in key, value or tags."""

    query: str
    agent: str = ""
    type: str = ""
    team: str = ""
    before: str = ""
    limit: int = 20


@dataclass(frozen=True, slots=True)
class ListMemory(Request[tuple[MemoryRow, ...]]):
    agent: str = ""
    type: str = ""
    team: str = ""
    before: str = ""
    limit: int = 50


def store(context: Context, request: StoreMemory) -> MemoryRow:
    must_be_self(context, request.agent)
    agent, team = context.actor.name, the_team(context, request.team, Permission.MEMORY)
    name = some_text("key", request.key, most=MOST_KEY)
    value = some_text("value", request.value, most=MOST)
    kind, tags = _type(request.type), _tags(request.tags)
    now = context.store.now()
    body = {"key": name, "value": value, "type": kind, "tags": list(tags), "changed_at": now}
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


def _type(word: str) -> str:
    if word not in TYPES:
        fix = nearest(word, TYPES) or f"Choose one of: {', '.join(TYPES)}."
        raise BadInput(f"'{word[:60]}' is not a type of memory.", fix=fix)
    return word


def _tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    if len(tags) > MOST_TAGS:
        raise BadInput(f"{len(tags)} tags are too many.", fix=f"Give at most {MOST_TAGS}.")
    return tuple(dict.fromkeys(some_text("tag", tag, most=MOST_KEY) for tag in tags))


def recall(context: Context, request: Recall) -> MemoryRow:
    agent = request.agent.strip() or context.actor.name
    team = the_team(context, request.team, Permission.MEMORY)
    entry = context.store.entry(EntryKind.MEMORY, team, _key(agent, request.key.strip()))
    if entry is None:
        raise NotFound(
            f"{agent[:60]} has no memory under '{request.key[:60]}'.",
            fix="Search for a word of it.",
        )
    return _row(entry)


def search(context: Context, request: SearchMemory) -> tuple[MemoryRow, ...]:
    query = some_text("query", request.query, most=MOST_QUERY, example="Give a word of it.")
    listing = ListMemory(request.agent, request.type, request.team, request.before, request.limit)
    return _matching(context, listing, query)


def list_memory(context: Context, request: ListMemory) -> tuple[MemoryRow, ...]:
    return _matching(context, request, "")


def _matching(context: Context, request: ListMemory, text: str) -> tuple[MemoryRow, ...]:
    wanted = _type(request.type) if request.type else ""
    owner = clean_text("agent", request.agent.strip(), most=MOST_KEY)
    query = query_of(
        context,
        EntryKind.MEMORY,
        team=request.team,
        owner=owner,
        text=text,
        limit=request.limit,
        before=request.before,
    )
    rows = (_row(entry) for page in pages(context.store.entries, query) for entry in page)
    return tuple(islice((row for row in rows if wanted in {"", row.type}), request.limit))


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


_P = Permission.MEMORY
OPERATIONS = (
    Operation("memory.store", StoreMemory, _P, store, "Store a memory under a key."),
    Operation("memory.recall", Recall, _P, recall, "Recall a memory by its key.", reads=True),
    Operation("memory.search", SearchMemory, _P, search, "Search the memories.", reads=True),
    Operation("memory.list", ListMemory, _P, list_memory, "List the memories.", reads=True),
)
