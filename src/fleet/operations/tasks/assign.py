"""Assign a task to a member who does it by hand. An assigned task gets no run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import GRANTS, Permission
from fleet.domain.causes import check_depth, let_run
from fleet.domain.data import dataclass
from fleet.domain.errors import Forbidden, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Name
from fleet.domain.task import Task, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import cause_of
from fleet.operations.shared.names import the_task
from fleet.operations.tasks.commit import write_task
from fleet.operations.tasks.rows import TaskRow, rows

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context


@dataclass(frozen=True, slots=True)
class AssignTask(Request[TaskRow]):
    """`assignee`: empty for no one; with `claim` the caller, unless another member has the task.

    `fresh`: also refused when the caller has it already, so that only one of two programs with the
    same name gets it.
    """

    task: str
    assignee: Name = ""
    claim: bool = False
    fresh: bool = False


def assign(context: Context, request: AssignTask) -> TaskRow:
    name = " ".join(request.assignee.split())
    if request.claim:
        return _claim(context, request, name or context.actor.name)
    needed = Permission.CLAIM if name == context.actor.name else Permission.ASSIGN
    task = the_task(context, request.task, needed)
    if name and not _has(context, task) and task.spec.assignee != name:
        _must_be_open(task)
    return _given(context, task, name)


def _claim(context: Context, request: AssignTask, name: str) -> TaskRow:
    """Assign the task to `name`. Raise `Refused` unless it is open and no other member has it."""
    own = name == context.actor.name
    task = the_task(context, request.task, Permission.CLAIM if own else Permission.ASSIGN)
    if _has(context, task):
        return rows(context, [task])[0]
    if context.actor.run:
        raise Refused(
            f"{context.actor.run} works on {context.actor.task}; it cannot take {task.id} as well.",
            fix=f"Leave {task.id} in the queue: it gets a run of its own.",
        )
    _must_be_open(task)
    if task.spec.assignee not in {"", "" if request.fresh else name}:
        raise Refused(
            f"{task.id} is already assigned to {task.spec.assignee}.",
            fix=f"To release it: fleet bd update {task.id} --assignee ''",
            code="claimed",
        )
    return _given(context, task, name)


def must_be_theirs(context: Context, task: Task, *, or_free: bool = True) -> None:
    """Raise unless the actor works on the task, added it, or may assign tasks.

    `or_free`: also accept any actor for a task without an assignee.
    """
    name = context.actor.name
    mine = name in {task.spec.assignee, task.author} or _has(context, task)
    if mine or (or_free and not task.spec.assignee) or may_assign(context):
        return
    whose = f"assigned to {task.spec.assignee}" if task.spec.assignee else "not yours"
    raise Forbidden(
        f"{task.id} is {whose}.", fix="Ask its author, or a team-lead.", code="not_yours"
    )


def may_assign(context: Context) -> bool:
    return Permission.ASSIGN in GRANTS[context.actor.role]


def _has(context: Context, task: Task) -> bool:
    """Whether the actor is a run of this task."""
    return bool(context.actor.run) and context.actor.task == task.id


def _must_be_open(task: Task) -> None:
    if task.join is not None:
        raise Refused(
            f"{task.id} has child tasks and no run of its own.", fix="Take one of its children."
        )
    if task.state is TaskState.RUNNING:
        raise Refused(
            f"{task.id} is running: {task.run_id} has it.",
            fix=f"Stop that first: fleet cancel {task.id}",
            code="claimed",
        )
    if task.state is not TaskState.OPEN:
        raise Refused(
            f"{task.id} is {task.state}, so there is nothing to do.",
            fix=f"`fleet retry {task.id}` opens it again.",
            code="ended",
        )


def _given(context: Context, task: Task, name: str) -> TaskRow:
    if task.spec.assignee == name:
        return rows(context, [task])[0]
    if context.run is not None and not name:  # without an assignee, the task gets a run
        check_depth(task.depth, context.world("").settings.max_depth)
    changed = replace(task, spec=replace(task.spec, assignee=name))
    if not name:
        changed = let_run(changed, cause_of(context))
    return write_task(context, changed, Kind.TASK_ASSIGNED, assignee=name)


OPERATIONS = (
    Operation(
        "task.assign",
        AssignTask,
        Permission.CLAIM,
        assign,
        "Assign a task to a member, or claim it.",
    ),
)
