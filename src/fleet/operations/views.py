"""Filters of the dashboard's list of tasks, kept under a name: the whole team's, no matter who saved it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Name, TextLimit
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import a_name, keep, new_entry, page, the_team

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

MAX_VIEWS = 50  # of a team
ViewName = Annotated[str, TextLimit(60, some=True, what="name of a view")]


@dataclass(frozen=True, slots=True)
class ViewRow:
    """`words`: what is written in the filter, such as `status:asking label:ui`."""

    id: str
    name: str
    words: str
    team: str
    owner: str


@dataclass(frozen=True, slots=True)
class ListViews(Request[tuple[ViewRow, ...]]):
    team: Name = ""


@dataclass(frozen=True, slots=True)
class SaveView(Request[ViewRow]):
    """One of this name is replaced."""

    name: ViewName
    words: Annotated[str, TextLimit(500, what="filter")]
    team: Name = ""


@dataclass(frozen=True, slots=True)
class RemoveView(Request[ViewRow]):
    name: ViewName
    team: Name = ""


def list_views(context: Context, request: ListViews) -> tuple[ViewRow, ...]:
    team = the_team(context, request.team, Permission.READ)
    views = (_row(entry) for entry in _views(context, team))
    return tuple(sorted(views, key=lambda view: view.name.casefold()))


def save(context: Context, request: SaveView) -> ViewRow:
    team, name = the_team(context, request.team, Permission.ADD), a_name(request.name)
    earlier = context.store.entry(EntryKind.VIEW, team, name)
    is_new = earlier is None or not earlier.counts(context.store.now())
    if is_new and len(_views(context, team)) >= MAX_VIEWS:
        raise Refused(f"{team} has {MAX_VIEWS} views, which is the limit.", fix="Remove one first.")
    owner = context.actor.name
    entry = earlier or new_entry(context, EntryKind.VIEW, team=team, key=name, owner=owner)
    body = {"words": " ".join(request.words.split())}
    return _row(keep(context, replace(entry, owner=owner, until=0, body=body), Kind.VIEW_CHANGED))


def remove(context: Context, request: RemoveView) -> ViewRow:
    team, name = the_team(context, request.team, Permission.ADD), a_name(request.name)
    entry = context.store.entry(EntryKind.VIEW, team, name)
    if entry is None:
        raise NotFound(f"There is no view '{name}'.", fix="List them: fleet view")
    if not entry.counts(context.store.now()):
        return _row(entry)
    removed = replace(entry, until=max(1, context.store.now() - 1))
    return _row(keep(context, removed, Kind.VIEW_CHANGED))


def _views(context: Context, team: str) -> list[Entry]:
    now = context.store.now()
    return page(context, EntryKind.VIEW, team=team, limit=MAX_VIEWS, counting_at=now)


def _row(entry: Entry) -> ViewRow:
    return ViewRow(entry.id, entry.key, str(entry.body.get("words", "")), entry.team, entry.owner)


OPERATIONS = (
    Operation("view.list", ListViews, Permission.READ, list_views, "List the team's views."),
    Operation("view.save", SaveView, Permission.ADD, save, "Save a filter of tasks as a view.",
              idempotent=False),
    Operation("view.remove", RemoveView, Permission.ADD, remove, "Remove a view."),
)  # fmt: skip
