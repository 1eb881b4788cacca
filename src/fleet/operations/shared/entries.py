"""What operations on the entries of a team have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.access import LEADS, Permission, allow
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import BadInput, Forbidden
from fleet.operations.shared.names import (
    clean_text,
    how_many,
    is_task_name,
    some_text,
    team_in_view,
)
from fleet.ports import EntryQuery, Put

if TYPE_CHECKING:
    from fleet.domain.event import Kind
    from fleet.operations.catalogue import Context

MOST_NAME = 200


def the_team(context: Context, team: str, permission: Permission) -> str:
    """The named team, or the actor's own when empty; raise unless the actor may do this there."""
    wanted = clean_text("team", team.strip(), most=MOST_NAME) or context.actor.team
    allow(context.actor, permission, team=wanted)
    return wanted


def must_be_self(context: Context, name: str) -> None:
    """Refuse a request that names another sender: the sender is known by the token."""
    if name and name != context.actor.name:
        raise Forbidden(
            f"{context.actor.name} cannot speak as {name[:60]}.",
            fix="Leave out the sender: the token says who it is.",
            code="forged",
        )


def must_own(context: Context, owner: str) -> None:
    """Raise unless the actor is the owner or leads the team."""
    if owner != context.actor.name and context.actor.role not in LEADS:
        raise Forbidden(f"That is {owner[:60]}'s.", fix="Ask a team-lead.")


def a_name(what: str, name: str) -> str:
    return some_text(what, " ".join(name.split()), most=MOST_NAME, example="Name a member.")


def a_person(name: str) -> str:
    """The name of a person: not one that is an agent's address."""
    if is_task_name(name.strip()):
        raise BadInput(
            f"The name '{name[:60]}' looks like a task's id.", fix="Choose another name."
        )
    return a_name("name", name)


def new_entry(
    context: Context, kind: EntryKind, *, team: str, key: str, owner: str, **given: Any
) -> Entry:
    """A new entry, not written yet. Empty `key`: its id."""
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
    return EntryQuery(kind, team_in_view(context, team), limit=how_many(limit), **given)
