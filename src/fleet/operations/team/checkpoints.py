"""Hand-offs: a checkpoint that an actor writes for another to continue from, and who took it up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.access import LEADS, Permission
from fleet.domain.addressing import may_read
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.message import MessageKind, MessageState, order_of
from fleet.domain.run import Checkpoint, Summary
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import Address, address, own_names, reader_of
from fleet.operations.messages.deliver import speak
from fleet.operations.messages.speech import new_message, the_message
from fleet.operations.shared.entries import a_name, must_be_self, must_own, the_team
from fleet.operations.shared.names import clean_text, how_many, some_text, team_in_view
from fleet.ports import MessageQuery, Put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.message import Message
    from fleet.operations.catalogue import Context

MOST, MOST_ITEMS = 10_000, 200
MOST_LOOKED_AT = 100  # hand-offs for one name, among which the caller may read some
STATUS = {
    MessageState.OPEN: "pending",
    MessageState.CLOSED: "accepted",
    MessageState.REFUSED: "rejected",
}
SETTLED = {
    MessageState.CLOSED: Kind.CHECKPOINT_ACCEPTED,
    MessageState.REFUSED: Kind.CHECKPOINT_REJECTED,
}
STATES = {status: state for state, status in STATUS.items()}


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """`status`: pending, accepted or rejected; `task`: the task of its author, if that is a run."""

    id: str
    sender: str
    to: str
    team: str
    task: str
    status: str
    why: str
    at: Time
    settled_at: Time | None
    summary: Summary


@dataclass(frozen=True, slots=True)
class SaveCheckpoint(Request[CheckpointRow]):
    """`to`: the member who continues from it; empty: the caller."""

    summary: Summary
    to: str = ""
    sender: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class LoadCheckpoint(Request[CheckpointRow]):
    checkpoint: str


@dataclass(frozen=True, slots=True)
class LatestCheckpoint(Request[CheckpointRow]):
    """`to`: the member it is for; empty: the caller."""

    to: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class ListCheckpoints(Request[tuple[CheckpointRow, ...]]):
    """Newest first. `to`: those for this member; empty: the caller's own, for a lead all."""

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
    name = a_name("recipient", request.to or context.actor.name)
    to, agent = address(context.store, team, name) if request.to else Address(name)
    _check(request.summary)
    handoff = new_message(
        context,
        MessageKind.HANDOFF,
        request.summary.goal,
        is_open=True,
        team=team,
        to=to,
        data={"task": context.actor.task},
        checkpoint=Checkpoint(session=_session(context), outline=request.summary),
    )
    event = context.event(Kind.CHECKPOINT_SAVED, "", message=handoff.id, team=team)
    return _row(speak(context, handoff, [agent] if agent else [], event))


def _session(context: Context) -> str:
    """The conversation of the run that saves it."""
    run = context.actor.run
    progress = context.store.progress([run]).get(run) if run else None
    return progress.session if progress else ""


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
    return _row(_the_handoff(context, request.checkpoint))


def _the_handoff(context: Context, name: str) -> Message:
    return the_message(context, MessageKind.HANDOFF, name, Permission.CHECKPOINT)


def latest(context: Context, request: LatestCheckpoint) -> CheckpointRow:
    to = request.to.strip()
    team = the_team(context, request.team, Permission.CHECKPOINT)
    names = _addressees(context, team, to) if to else own_names(context.store, context.actor)
    query = MessageQuery(MessageKind.HANDOFF, team=team, limit=MOST_LOOKED_AT)
    handoffs = _for_names(context, names, query)
    if not handoffs:
        name = (to or names[0])[:60]
        raise NotFound(f"There is no checkpoint for {name}.", fix="`fleet checkpoints`")
    return _row(max(handoffs, key=lambda handoff: order_of(handoff.id)))


def list_checkpoints(context: Context, request: ListCheckpoints) -> tuple[CheckpointRow, ...]:
    if request.status not in {"", *STATES}:
        *some, last = STATES
        known = f"{', '.join(some)} and {last}"
        raise BadInput(f"'{request.status[:60]}' is not a status.", fix=f"There are {known}.")
    team, limit = team_in_view(context, request.team), how_many(request.limit)
    query = MessageQuery(
        MessageKind.HANDOFF,
        team=team,
        state=str(STATES[request.status]) if request.status else "",
        before=request.before,
        limit=limit,
    )
    to = request.to.strip()
    if not to and context.actor.role in LEADS:
        return tuple(map(_row, context.store.find_messages(query)))
    names = _addressees(context, team, to) if to else own_names(context.store, context.actor)
    handoffs = _for_names(context, names, query)
    handoffs.sort(key=lambda handoff: order_of(handoff.id), reverse=True)
    return tuple(map(_row, handoffs[:limit]))


def _addressees(context: Context, team: str, name: str) -> tuple[str, ...]:
    """The name itself, under which a run saves its own, and the agent or person that it means."""
    try:
        to = address(context.store, team or context.actor.team, name).to
    except NotFound:
        return (name,)
    return tuple(dict.fromkeys((name, to)))


def _for_names(context: Context, names: Sequence[str], query: MessageQuery) -> list[Message]:
    """The hand-offs for these names that the actor may read."""
    reader = reader_of(context.store, context.actor)
    handoffs = (
        h for name in names for h in context.store.find_messages(query._replace(topic=name))
    )
    return [handoff for handoff in handoffs if may_read(handoff, reader)]


def accept(context: Context, request: AcceptCheckpoint) -> CheckpointRow:
    return _settled(context, request.checkpoint, MessageState.CLOSED, "")


def reject(context: Context, request: RejectCheckpoint) -> CheckpointRow:
    why = clean_text("reason", request.why, most=MOST)
    return _settled(context, request.checkpoint, MessageState.REFUSED, why)


def _settled(context: Context, name: str, state: MessageState, why: str) -> CheckpointRow:
    handoff = _the_handoff(context, name)
    if handoff.to not in own_names(context.store, context.actor):
        must_own(context, handoff.to)
    if handoff.state is state:
        return _row(handoff)
    if handoff.state is not MessageState.OPEN:
        status = STATUS[handoff.state]
        raise Refused(f"{handoff.id} is {status} already.", fix="Save another.", code="settled")
    settled = replace(handoff, state=state, reason=why, closed_at=context.store.now())
    event = context.event(SETTLED[state], "", message=handoff.id, team=handoff.team)
    context.commit([Put(settled)], event)
    return _row(settled)


def _row(handoff: Message) -> CheckpointRow:
    assert handoff.checkpoint is not None
    assert handoff.checkpoint.outline is not None
    return CheckpointRow(
        id=handoff.id,
        sender=handoff.author,
        to=handoff.to,
        team=handoff.team,
        task=handoff.data["task"],
        status=STATUS[handoff.state],
        why=handoff.reason,
        at=handoff.at,
        settled_at=handoff.closed_at or None,
        summary=handoff.checkpoint.outline,
    )


_P = Permission.CHECKPOINT
OPERATIONS = (
    Operation(
        "checkpoint.save",
        SaveCheckpoint,
        _P,
        save,
        "Save a checkpoint.",
        idempotent=False,
        shown_by="checkpoint.load",
    ),
    Operation("checkpoint.load", LoadCheckpoint, _P, load, "Load a checkpoint.", reads=True),
    Operation(
        "checkpoint.latest", LatestCheckpoint, _P, latest, "Load the newest checkpoint.", reads=True
    ),
    Operation(
        "checkpoint.list",
        ListCheckpoints,
        _P,
        list_checkpoints,
        "List the checkpoints.",
        reads=True,
    ),
    Operation(
        "checkpoint.accept",
        AcceptCheckpoint,
        _P,
        accept,
        "Accept a checkpoint and continue from it.",
    ),
    Operation("checkpoint.reject", RejectCheckpoint, _P, reject, "Reject a checkpoint."),
)
