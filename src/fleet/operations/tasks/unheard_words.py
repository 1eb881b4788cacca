"""Words that nobody will hear any more: their task has ended by somebody's word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.message import MessageKind, MessageState, refused
from fleet.domain.task import TaskState
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.ports import Change, Store

OVER = {TaskState.CANCELLED, TaskState.DONE}


def refused_words(store: Store, task: Task, *, now: int) -> list[Change]:
    """To be written with the task as it is to be; one that failed may be tried again with them."""
    if task.state not in OVER:
        return []
    why = f"{task.id} was {task.state} before anybody heard it."
    return [
        Put(refused(m, why, at=now))
        for m in store.messages(task.id)
        if m.kind is MessageKind.WORDS and m.state is MessageState.OPEN
    ]
