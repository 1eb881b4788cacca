"""Which task waits for which."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain import task as rules
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, Mismatch, NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.task import Task, TaskState, need_of
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import LIST, the_task
from fleet.operations.tasks.commit import write_task
from fleet.operations.tasks.rows import TaskRow, rows
from fleet.ports import Same

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from fleet.operations.catalogue import Context


@dataclass(frozen=True, slots=True)
class AddDependency(Request[TaskRow]):
    """`needs`: a task; `t-3:landed`: until the work of t-3 has landed."""

    task: str
    needs: str


@dataclass(frozen=True, slots=True)
class RemoveDependency(Request[TaskRow]):
    task: str
    needs: str


def needed(context: Context, name: str) -> Task:
    """The task of that name; raise unless another task can wait for it."""
    if not name.strip():
        raise NotFound("No task was named.", fix=LIST)
    try:
        need = the_task(context, name, Permission.READ)
    except NotFound as error:
        raise NotFound(f"There is no task '{name[:60]}' to wait for.", fix=LIST) from error
    if need.state is TaskState.CANCELLED:
        raise Refused(
            f"{need.id} is cancelled, so nothing can wait for it.",
            fix=f"`fleet retry {need.id}` opens it again.",
        )
    return need


def needs_of(
    context: Context, names: Iterable[str], known: Collection[str] = ()
) -> dict[str, bool]:
    """By id of each named task, whether it must have landed. `known`: names that are ids already."""
    needs: dict[str, bool] = {}
    for name, landed in map(need_of, names):
        need = name if name in known else needed(context, name).id
        needs[need] = needs.get(need, False) or landed
    return needs


def depend(context: Context, request: AddDependency) -> TaskRow:
    task = _waiting(context, request.task)
    ((need, landed),) = needs_of(context, [request.needs]).items()
    changed, seen = with_need(context, task, need)
    if landed and need not in task.after_landed:
        changed = replace(changed, after_landed=(*task.after_landed, need))
    if changed == task:
        return rows(context, [task])[0]
    same = [Same(t) for t in seen]  # so that two commits at the same time cannot make a circle
    return write_task(context, changed, Kind.TASK_NEEDS, same, needs=need)


def with_need(context: Context, task: Task, need: str) -> tuple[Task, list[Task]]:
    """The task with the new dependency, and the tasks that were read to exclude a circle."""
    if need in task.after:
        return task, []
    if need == task.id:
        raise Mismatch(f"{task.id} cannot wait for itself.", fix="Name another task.")
    seen: dict[str, Task] = {}

    def needs_of(task_id: str) -> tuple[str, ...]:
        other = seen.get(task_id) or context.store.tasks_by_id([task_id]).get(task_id)
        if other is None:
            return ()
        seen[task_id] = other
        return other.after

    try:
        changed = rules.depend(task, need, needs_of)
    except BadInput as error:
        first, then, *_ = rules.find_path(need, task.id, needs_of)
        error.fix = f"`fleet dep rm {first} {then}` breaks the circle."
        raise
    return changed, [other for other in seen.values() if other.id != task.id]


def independ(context: Context, request: RemoveDependency) -> TaskRow:
    task = the_task(context, request.task, Permission.ASSIGN)
    needs = the_task(context, need_of(request.needs)[0], Permission.READ).id
    if needs not in task.after:
        fix = f"It waits for {', '.join(task.after)}." if task.after else "It waits for nothing."
        raise Refused(f"{task.id} does not wait for {needs}.", fix=fix, code="no_dependency")
    changed = replace(
        task,
        after=tuple(n for n in task.after if n != needs),
        after_landed=tuple(n for n in task.after_landed if n != needs),
    )
    return write_task(context, changed, Kind.TASK_NEEDS_NOT, needs=needs)


def _waiting(context: Context, name: str) -> Task:
    task = the_task(context, name, Permission.ASSIGN)
    if task.state is not TaskState.OPEN:
        raise Refused(
            f"{task.id} is {task.state}: only an open task can wait.",
            fix=f"`fleet show {task.id}` shows what happened.",
        )
    return task


OPERATIONS = (
    Operation("task.depend", AddDependency, Permission.ASSIGN, depend,
              "Make a task wait for another."),
    Operation("task.independ", RemoveDependency, Permission.ASSIGN, independ,
              "Stop a task from waiting for another."),
)  # fmt: skip
