"""Make and find messages: shared by mail, chats, hand-offs and boards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.access import Permission, allow, sees
from fleet.domain.addressing import may_read
from fleet.domain.errors import NotFound
from fleet.domain.message import Message, MessageKind, MessageState, Receipt
from fleet.operations.messages.addresses import reader_of

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

NAMES = {MessageKind.HANDOFF: "checkpoint"}  # what users call the kind, where that differs


def new_message(
    context: Context, kind: MessageKind, text: str, *, is_open: bool = False, **fields: Any
) -> Message:
    """A message by the actor, now. `is_open`: it waits to be read or accepted."""
    now = context.store.now()
    return Message(
        id=context.store.new_id("m"),
        version=0,
        task=fields.pop("task", ""),
        author=context.actor.name,
        kind=kind,
        text=text,
        state=MessageState.OPEN if is_open else MessageState.CLOSED,
        at=now,
        receipt=Receipt(closed_at=0 if is_open else now),
        **fields,
    )


def the_message(
    context: Context, kind: MessageKind, message_id: str, permission: Permission
) -> Message:
    """The message of this id. Raise `NotFound` unless it is of this kind and the actor may read it."""
    message = _in_view(context, message_id.strip())
    if message is None or message.kind is not kind:
        name = NAMES.get(kind, str(kind))
        fix = (
            f"`fleet {name}s` lists them."
            if kind is MessageKind.HANDOFF
            else f"`fleet {name} list` lists them."
        )
        raise NotFound(f"There is no {name} '{message_id[:60]}'.", fix=fix)
    allow(context.actor, permission)
    return message


def _in_view(context: Context, message_id: str) -> Message | None:
    try:
        message = context.store.message(message_id)
    except NotFound:
        return None
    seen = sees(context.actor, message.team) and may_read(
        message, reader_of(context.store, context.actor)
    )
    return message if seen else None
