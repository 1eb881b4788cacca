"""Checkpoints that somebody writes for somebody to go on from, and who took them up."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import BadInput, NotFound, Refused
from fleet.domain.event import Kind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.deliver import own_names
from fleet.operations.shared.entries import (
    a_name,
    keep,
    must_be_self,
    must_own,
    new_entry,
    page,
    the_entry,
    the_team,
)
from fleet.operations.shared.names import clean_text, some_text

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

MOST, MOST_ITEMS = 10_000, 200
PENDING, ACCEPTED, REJECTED = "pending", "accepted", "rejected"
SETTLED = {ACCEPTED: Kind.CHECKPOINT_ACCEPTED, REJECTED: Kind.CHECKPOINT_REJECTED}


@dataclass(frozen=True, slots=True)
class DoneItem:
    task: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What is wanted, where it stands, how it is tried, and what comes next."""

    goal: str
    now: str
    test: str = ""
    done: tuple[DoneItem, ...] = ()
    blockers: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    worked: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """`status`: pending, accepted or rejected; `task`: what its author, a run, works on."""

    id: str
    sender: str
    to: str
    team: str
    task: str
    status: str
    why: str
    at: int
    settled_at: int | None
    summary: Summary


@dataclass(frozen=True, slots=True)
class SaveCheckpoint(Request[CheckpointRow]):
    """`to`: who goes on from it; whoever asks, if nobody is named."""

    summary: Summary
    to: str = ""
    sender: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class LoadCheckpoint(Request[CheckpointRow]):
    checkpoint: str


@dataclass(frozen=True, slots=True)
class LatestCheckpoint(Request[CheckpointRow]):
    """The newest that is for them."""

    to: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class ListCheckpoints(Request[tuple[CheckpointRow, ...]]):
    """Those for somebody, or for all that the actor may see; newest first."""

    to: str = ""
    status: str = ""
    team: str = ""
    before: str = ""
    limit: int = 50


@dataclass(frozen=True, slots=True)
class AcceptCheckpoint(Request[CheckpointRow]):
    checkpoint: str


@dataclass(frozen=True, slots=True)
class RejectCheckpoint(Request[CheckpointRow]):
    checkpoint: str
    why: str = ""


def save(context: Context, request: SaveCheckpoint) -> CheckpointRow:
    must_be_self(context, request.sender)
    team = the_team(context, request.team, Permission.CHECKPOINT)
    to = a_name("recipient", request.to or context.actor.name)
    _check(request.summary)
    body = {
        "sender": context.actor.name,
        "task": context.actor.task,
        "status": PENDING,
        "summary": asdict(request.summary),
    }
    goal = request.summary.goal
    entry = new_entry(
        context, EntryKind.CHECKPOINT, team=team, key="", owner=to, text=goal, body=body
    )
    return _row(keep(context, entry, Kind.CHECKPOINT_SAVED))


def _check(summary: Summary) -> None:
    some_text("goal", summary.goal, most=MOST)
    some_text("state", summary.now, most=MOST)
    clean_text("test", summary.test, most=MOST)
    lists = (*(d.files for d in summary.done), tuple(d.task for d in summary.done))
    named = ("blockers", "questions", "next", "worked", "failed", "files")
    for items in (*lists, *(getattr(summary, name) for name in named)):
        if len(items) > MOST_ITEMS:
            raise BadInput(f"{len(items)} items are too many.", fix=f"At most {MOST_ITEMS}.")
        for item in items:
            clean_text("item", item, most=MOST)


def load(context: Context, request: LoadCheckpoint) -> CheckpointRow:
    return _row(_the_checkpoint(context, request.checkpoint))


def _the_checkpoint(context: Context, name: str) -> Entry:
    return the_entry(context, EntryKind.CHECKPOINT, name, Permission.CHECKPOINT)


def latest(context: Context, request: LatestCheckpoint) -> CheckpointRow:
    to = request.to.strip()
    team = the_team(context, request.team, Permission.CHECKPOINT)
    names = (to,) if to else own_names(context)
    found = [
        entry
        for name in names
        for entry in page(context, EntryKind.CHECKPOINT, team=team, owner=name, limit=1)
    ]
    if not found:
        raise NotFound(f"There is no checkpoint for {names[0][:60]}.", fix="`fleet checkpoints`")
    return _row(max(found, key=lambda entry: entry.at))


def list_checkpoints(context: Context, request: ListCheckpoints) -> tuple[CheckpointRow, ...]:
    if request.status not in {"", PENDING, ACCEPTED, REJECTED}:
        known = f"{PENDING}, {ACCEPTED} and {REJECTED}"
        raise BadInput(f"'{request.status[:60]}' is no status.", fix=f"There are {known}.")
    found: list[CheckpointRow] = []
    before, owner = request.before, request.to.strip()
    while len(found) < request.limit:
        some = page(
            context,
            EntryKind.CHECKPOINT,
            team=request.team,
            owner=owner,
            limit=request.limit,
            before=before,
        )
        found += [r for r in map(_row, some) if request.status in {"", r.status}]
        if len(some) < request.limit:
            break
        before = some[-1].id
    return tuple(found[: request.limit])


def accept(context: Context, request: AcceptCheckpoint) -> CheckpointRow:
    return _settled(context, request.checkpoint, ACCEPTED, "")


def reject(context: Context, request: RejectCheckpoint) -> CheckpointRow:
    why = clean_text("reason", request.why, most=MOST)
    return _settled(context, request.checkpoint, REJECTED, why)


def _settled(context: Context, name: str, status: str, why: str) -> CheckpointRow:
    entry = _the_checkpoint(context, name)
    if entry.owner not in own_names(context):
        must_own(context, entry.owner)
    held = entry.body["status"]
    if held == status:
        return _row(entry)
    if held != PENDING:
        raise Refused(f"{entry.id} is {held} already.", fix="Save another.", code="settled")
    body = {**entry.body, "status": status, "why": why, "settled_at": context.store.now()}
    return _row(keep(context, replace(entry, body=body), SETTLED[status]))


def _row(entry: Entry) -> CheckpointRow:
    body = entry.body
    return CheckpointRow(
        id=entry.id,
        sender=body["sender"],
        to=entry.owner,
        team=entry.team,
        task=body["task"],
        status=body["status"],
        why=body.get("why", ""),
        at=entry.at,
        settled_at=body.get("settled_at"),
        summary=_summary(body["summary"]),
    )


def _summary(held: dict[str, Any]) -> Summary:
    plain: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list | tuple) else v for k, v in held.items()
    }
    plain["done"] = tuple(DoneItem(d["task"], tuple(d["files"])) for d in held["done"])
    return Summary(**plain)


_P = Permission.CHECKPOINT
OPERATIONS = (
    Operation("checkpoint.save", SaveCheckpoint, _P, save, "Save a checkpoint.", idempotent=False),
    Operation("checkpoint.load", LoadCheckpoint, _P, load, "Load a checkpoint.", reads=True),
    Operation("checkpoint.latest", LatestCheckpoint, _P, latest, "Load the newest.", reads=True),
    Operation("checkpoint.list", ListCheckpoints, _P, list_checkpoints, "List them.", reads=True),
    Operation("checkpoint.accept", AcceptCheckpoint, _P, accept, "Go on from a checkpoint."),
    Operation("checkpoint.reject", RejectCheckpoint, _P, reject, "Do not go on from one."),
)
