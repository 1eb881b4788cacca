"""Write a task with its parents, and refuse messages that no run of it will receive any more."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleet.domain.errors import Refused
from fleet.domain.event import Event
from fleet.domain.message import MessageKind, MessageState, refused
from fleet.domain.task import Task, TaskState, join
from fleet.operations.tasks.rows import rows
from fleet.ports import Put, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fleet.domain.event import Kind
    from fleet.operations.catalogue import Context
    from fleet.operations.tasks.rows import TaskRow
    from fleet.ports import Change, Store

MAX_CHILDREN = 10_000
OVER = {TaskState.CANCELLED, TaskState.DONE}


def write_task(
    context: Context, task: Task, kind: Kind, more: Iterable[Change] = (), **data: str
) -> TaskRow:
    """Write the task, its parents and the event in one commit; return the task's row."""
    # a task that was only added was last changed when it was added
    at = context.store.now() if task.version else task.created_at
    event = Event(kind, task.id, context.actor.name, at, context.actor.run, dict(data))
    parents = parent_changes(context.store, task, now=event.at)
    unheard = refused_words(context.store, task, now=event.at)
    written = context.commit([Put(task), *more, *parents, *unheard], event)[0]
    assert isinstance(written, Task)
    return rows(context, [written], None if task.version else {})[0]  # a new task has no questions


@contextmanager
def decided(task: Task) -> Iterator[None]:
    """Add the fix `fleet show` to a `Refused` that has none."""
    try:
        yield
    except Refused as error:
        error.fix = error.fix or f"`fleet show {task.id}` shows what happened."
        raise


def children(store: Store, task: Task) -> list[Task]:
    """The task's children, oldest first."""
    if task.join is None:
        return []
    return store.tasks(TaskQuery(parent=task.id, limit=MAX_CHILDREN, oldest_first=True))


def parent_changes(store: Store, child: Task, *, now: int) -> list[Change]:
    """The changes of the task's parents, even unchanged ones, so that children that end at once conflict."""
    changes: list[Change] = []
    while child.parent:
        parent = store.task(child.parent)
        others = [s for s in children(store, parent) if s.id != child.id]
        child = join(parent, [*others, child], now=now)
        changes.append(Put(child))
    return changes


def refused_words(store: Store, task: Task, *, now: int) -> list[Change]:
    """The changes that refuse undelivered messages of a done or cancelled task.

    A failed task may be retried, and then delivers them.
    """
    if task.state not in OVER:
        return []
    why = f"{task.id} was {task.state} before a run received it."
    return [
        Put(refused(m, why, at=now))
        for m in store.messages(task.id)
        if m.kind is MessageKind.WORDS and m.state is MessageState.OPEN
    ]
