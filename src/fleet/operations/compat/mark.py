"""Set a task's status by one of claude-fleet's words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.causes import let_run
from fleet.domain.data import dataclass
from fleet.domain.errors import Refused
from fleet.domain.event import Kind
from fleet.domain.limits import OneOf
from fleet.domain.task import ENDED, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import cause_of
from fleet.operations.shared.names import the_task
from fleet.operations.tasks.assign import AssignTask, assign, may_assign, must_be_theirs
from fleet.operations.tasks.change import (
    CloseTask,
    ResumeTask,
    close,
    pause_task,
    reopen_task,
    resume,
)
from fleet.operations.tasks.commit import write_task
from fleet.operations.tasks.rows import TaskRow, rows

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

BEGUN = "begun"  # the label of a task whose assignee has begun it
WORDS = ("open", "in_progress", "resolved", "blocked")
Mark = Annotated[str, OneOf(WORDS, "status")]


@dataclass(frozen=True, slots=True)
class MarkTask(Request[TaskRow]):
    """`status`: open, in_progress (the caller works on it), resolved or blocked."""

    task: str
    status: Mark


def mark(context: Context, request: MarkTask) -> TaskRow:
    task = the_task(context, request.task, Permission.CLAIM)
    match request.status:
        case "open":
            return _open(context, task)
        case "in_progress":
            return _begin(context, task)
        case "resolved":
            return _resolve(context, task)
        case "blocked":
            must_be_theirs(context, task, or_free=False)
            return pause_task(context, task)
    raise AssertionError(request.status)


def _open(context: Context, task: Task) -> TaskRow:
    """Open a task again. If the caller may not assign tasks, it starts no run."""
    over = task.state in ENDED or task.state is TaskState.REVIEW
    must_be_theirs(context, task, or_free=not over and not task.paused)
    if over:
        return reopen_task(context, task)
    if task.paused and may_assign(context):
        return resume(context, ResumeTask(task.id))
    if task.paused:
        opened = let_run(replace(task, paused=False), cause_of(context))
        return write_task(context, opened, Kind.TASK_RESUMED)
    return _labelled(context, task, begun=False)


def _begin(context: Context, task: Task) -> TaskRow:
    if context.actor.task == task.id and task.state is TaskState.RUNNING:
        return rows(context, [task])[0]
    assign(context, AssignTask(task.id, claim=True))
    return _labelled(context, context.store.task(task.id), begun=True)


def _labelled(context: Context, task: Task, *, begun: bool) -> TaskRow:
    if (BEGUN in task.spec.labels) is begun:
        return rows(context, [task])[0]
    others = tuple(label for label in task.spec.labels if label != BEGUN)
    spec = replace(task.spec, labels=(*others, BEGUN) if begun else others)
    return write_task(
        context, replace(task, spec=spec), Kind.TASK_BEGUN if begun else Kind.TASK_LEFT
    )


def _resolve(context: Context, task: Task) -> TaskRow:
    needs = context.store.tasks_by_id(task.after).values()
    if unfinished := [n.id for n in needs if n.state is not TaskState.DONE]:
        raise Refused(
            f"{task.id} waits for {', '.join(unfinished)}.",
            fix="Resolve those first.",
            code="blocked",
        )
    return close(context, CloseTask(task.id))


OPERATIONS = (Operation("task.mark", MarkTask, Permission.CLAIM, mark, "Set a task's status."),)
