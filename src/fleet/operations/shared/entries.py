"""Helpers for operations on the entries of a team."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fleet.domain.access import LEADS, Permission, allow
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import Forbidden
from fleet.domain.limits import BLANK, TextLimit
from fleet.domain.limits.check import test_of
from fleet.operations.shared.names import team_in_view
from fleet.ports import EntryQuery, Put

if TYPE_CHECKING:
    from fleet.domain.event import Kind
    from fleet.operations.catalogue import Context

# The name of a person: not the id of a task or a run.
PERSON = rf"(?![{BLANK}]*(t-)?[0-9]+(\.[0-9]+)?[{BLANK}]*$)[^\0]*"
PersonName = Annotated[
    str,
    TextLimit(
        200,
        some=True,
        pattern=PERSON,
        what="name",
        example="Name a person. A task's id is its agent's.",
    ),
]
Recipient = Annotated[str, TextLimit(200, some=True, what="recipient", example="Name a member.")]


def the_team(context: Context, team: str, permission: Permission) -> str:
    """The named team, or the actor's own when empty; raise unless the actor may do this there."""
    name = team.strip() or context.actor.team
    allow(context.actor, permission, team=name)
    return name


def must_be_self(context: Context, name: str) -> None:
    """Refuse a request that names another sender: the sender is known by the token."""
    if name and name != context.actor.name:
        raise Forbidden(
            f"{context.actor.name} cannot send as {name[:60]}.",
            fix="Leave out the sender: the token says who it is.",
            code="forged",
        )


def must_own(context: Context, owner: str, what: str) -> None:
    """Raise unless the actor is the owner or leads the team."""
    if owner != context.actor.name and context.actor.role not in LEADS:
        raise Forbidden(
            f"{what} belongs to {owner[:60]}, not to {context.actor.name}.", fix="Ask a team-lead."
        )


def a_name(name: str) -> str:
    return " ".join(name.split())


def a_person(name: str) -> str:
    """Raise `BadInput` unless a person can have this name."""
    test = test_of(PersonName)
    assert test is not None
    test("name", name)
    return a_name(name)


def new_entry(
    context: Context, kind: EntryKind, *, team: str, key: str, owner: str, **given: Any
) -> Entry:
    """A new entry, not written yet. If `key` is empty, the entry's id is its key."""
    entry_id = context.store.new_id("e")
    at = context.store.now()
    return Entry(entry_id, 0, kind, team, key or entry_id, owner, at, **given)


def keep(context: Context, entry: Entry, kind: Kind) -> Entry:
    """Write the entry and its event, which has only the entry's id: every team can read events."""
    event = context.event(kind, "", entry=entry.id, team=entry.team)
    written = context.commit([Put(entry)], event)[0]
    assert isinstance(written, Entry)
    return written


def page(context: Context, kind: EntryKind, *, team: str, limit: int, **given: Any) -> list[Entry]:
    return context.store.entries(query_of(context, kind, team=team, limit=limit, **given))


def query_of(
    context: Context, kind: EntryKind, *, team: str, limit: int, **given: Any
) -> EntryQuery:
    return EntryQuery(kind, team_in_view(context, team), limit=limit, **given)
