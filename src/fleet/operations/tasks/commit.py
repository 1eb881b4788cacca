"""The one way in which an operation writes a task."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleet.domain.errors import Refused
from fleet.domain.task import Task
from fleet.operations.tasks.parents import parent_changes
from fleet.operations.tasks.rows import rows
from fleet.operations.tasks.unheard_words import refused_words
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fleet.domain.event import Kind
    from fleet.operations.catalogue import Context
    from fleet.operations.tasks.rows import TaskRow
    from fleet.ports import Change


def write_task(
    context: Context, task: Task, kind: Kind, more: Iterable[Change] = (), **data: str
) -> TaskRow:
    """The task, its parents and the fact, in one commit; the task as people see it then."""
    event = context.event(kind, task.id, **data)
    parents = parent_changes(context.store, task, now=event.at)
    unheard = refused_words(context.store, task, now=event.at)
    written = context.commit([Put(task), *more, *parents, *unheard], event)[0]
    assert isinstance(written, Task)
    return rows(context, [written], None if task.version else {})[0]  # a new one asks nothing


@contextmanager
def decided(task: Task) -> Iterator[None]:
    """What the rules refuse without saying what next leads to the task's own page."""
    try:
        yield
    except Refused as error:
        error.fix = error.fix or f"`fleet show {task.id}` tells its story."
        raise
