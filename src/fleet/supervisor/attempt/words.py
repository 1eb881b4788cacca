"""Record messages that a run has heard: one commit marks them delivered and their sources read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.event import Event, Kind
from fleet.domain.message import delivered
from fleet.operations.messages.deliver import is_read, read_marks
from fleet.ports import Put, Same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.message import Message
    from fleet.domain.run import Run
    from fleet.ports import Change, Store


def changes_of(store: Store, run: Run, message: Message, *, now: int) -> list[Change]:
    marks = read_marks(store, message, run.id, now=now)
    return [Put(delivered(message, at=now)), *marks]


def note_heard(store: Store, run: Run, message: Message) -> None:
    """Record that the run heard the message. Raise `Conflict` when the run has ended or changed."""
    now = store.now()
    fact = Event(Kind.MESSAGE_HEARD, run.task, SUPERVISOR, now, run.id, {"message": message.id})
    store.commit([*changes_of(store, run, message, now=now), Same(run)], [fact])


def unread(store: Store, run: Run, waiting: Sequence[Message]) -> list[Message]:
    """Leave out messages whose source the agent has already read, and mark those as heard."""
    messages = []
    for message in waiting:
        if is_read(store, message, run.id):
            note_heard(store, run, message)
        else:
            messages.append(message)
    return messages
