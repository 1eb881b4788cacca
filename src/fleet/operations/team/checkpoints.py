"""Hand-offs: a checkpoint that an actor writes for another to continue from, and who took it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import LEADS, Permission
from fleet.domain.addressing import may_read
from fleet.domain.data import dataclass
from fleet.domain.errors import NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Name, OneOf, Rows, TextLimit
from fleet.domain.message import Details, MessageKind, MessageState, close, order_of
from fleet.domain.run import Checkpoint, Summary
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import Address, address, own_names, reader_of
from fleet.operations.messages.deliver import speak
from fleet.operations.messages.speech import new_message, the_message
from fleet.operations.shared.entries import a_name, must_be_self, must_own, the_team
from fleet.operations.shared.names import team_in_view
from fleet.ports import MessageQuery, Put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.message import Message
    from fleet.operations.catalogue import Context

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

WhyRejected = Annotated[str, TextLimit(10_000, what="reason")]
AnyStatus = Annotated[str, OneOf(("", *STATES), "status")]


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
    to: Name = ""
    sender: str = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class LoadCheckpoint(Request[CheckpointRow]):
    checkpoint: str


@dataclass(frozen=True, slots=True)
class LatestCheckpoint(Request[CheckpointRow]):
    """`to`: the member it is for; empty: the caller."""

    to: Name = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class ListCheckpoints(Request[tuple[CheckpointRow, ...]]):
    """Newest first. `to`: those for this member; empty: the caller's own, for a lead all."""

    to: Name = ""
    status: AnyStatus = ""
    team: Name = ""
    before: str = ""
    limit: Rows = 50


@dataclass(frozen=True, slots=True)
class AcceptCheckpoint(Request[CheckpointRow]):
    checkpoint: str


@dataclass(frozen=True, slots=True)
class RejectCheckpoint(Request[CheckpointRow]):
    checkpoint: str
    why: WhyRejected = ""


def save(context: Context, request: SaveCheckpoint) -> CheckpointRow:
    must_be_self(context, request.sender)
    team = the_team(context, request.team, Permission.CHECKPOINT)
    name = a_name(request.to) or context.actor.name
    to, agent = address(context.store, team, name) if a_name(request.to) else Address(name)
    handoff = new_message(
        context,
        MessageKind.HANDOFF,
        request.summary.goal,
        is_open=True,
        team=team,
        to=to,
        data={"task": context.actor.task},
        details=Details(checkpoint=Checkpoint(session=_session(context), outline=request.summary)),
    )
    event = context.event(Kind.CHECKPOINT_SAVED, "", message=handoff.id, team=team)
    return _row(speak(context, handoff, [agent] if agent else [], event))


def _session(context: Context) -> str:
    """The conversation of the run that saves it."""
    run = context.actor.run
    progress = context.store.progress([run]).get(run) if run else None
    return progress.session if progress else ""


def load(context: Context, request: LoadCheckpoint) -> CheckpointRow:
    return _row(_the_handoff(context, request.checkpoint, Permission.READ))


def _the_handoff(context: Context, name: str, permission: Permission) -> Message:
    return the_message(context, MessageKind.HANDOFF, name, permission)


def latest(context: Context, request: LatestCheckpoint) -> CheckpointRow:
    to = request.to.strip()
    team = the_team(context, request.team, Permission.READ)
    names = _addressees(context, team, to) if to else own_names(context.store, context.actor)
    query = MessageQuery(MessageKind.HANDOFF, team=team, limit=MOST_LOOKED_AT)
    handoffs = _for_names(context, names, query)
    if not handoffs:
        name = (to or names[0])[:60]
        raise NotFound(f"There is no checkpoint for {name}.", fix="`fleet checkpoints`")
    return _row(max(handoffs, key=lambda handoff: order_of(handoff.id)))


def list_checkpoints(context: Context, request: ListCheckpoints) -> tuple[CheckpointRow, ...]:
    team, limit = team_in_view(context, request.team), request.limit
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
    return _settled(context, request.checkpoint, MessageState.REFUSED, request.why)


def _settled(context: Context, name: str, state: MessageState, why: str) -> CheckpointRow:
    handoff = _the_handoff(context, name, Permission.CHECKPOINT)
    if handoff.to not in own_names(context.store, context.actor):
        must_own(context, handoff.to, f"The hand-off {handoff.id}")
    if handoff.state is state:
        return _row(handoff)
    if handoff.state is not MessageState.OPEN:
        status = STATUS[handoff.state]
        raise Refused(f"{handoff.id} is {status} already.", fix="Save another.", code="settled")
    settled = close(handoff, state, at=context.store.now(), reason=why)
    event = context.event(SETTLED[state], "", message=handoff.id, team=handoff.team)
    context.commit([Put(settled)], event)
    return _row(settled)


def _row(handoff: Message) -> CheckpointRow:
    checkpoint = handoff.details.checkpoint
    assert checkpoint is not None
    assert checkpoint.outline is not None
    return CheckpointRow(
        id=handoff.id,
        sender=handoff.author,
        to=handoff.to,
        team=handoff.team,
        task=handoff.data["task"],
        status=STATUS[handoff.state],
        why=handoff.receipt.reason,
        at=handoff.at,
        settled_at=handoff.receipt.closed_at or None,
        summary=checkpoint.outline,
    )


_P, _READ = Permission.CHECKPOINT, Permission.READ
OPERATIONS = (
    Operation("checkpoint.save", SaveCheckpoint, _P, save, "Save a checkpoint.", idempotent=False,
              shown_by="checkpoint.load"),
    Operation("checkpoint.load", LoadCheckpoint, _READ, load, "Load a checkpoint."),
    Operation("checkpoint.latest", LatestCheckpoint, _READ, latest, "Load the newest checkpoint."),
    Operation("checkpoint.list", ListCheckpoints, _READ, list_checkpoints, "List the checkpoints."),
    Operation("checkpoint.accept", AcceptCheckpoint, _P, accept,
              "Accept a checkpoint and continue from it."),
    Operation("checkpoint.reject", RejectCheckpoint, _P, reject, "Reject a checkpoint."),
)  # fmt: skip
