"""Tasks with their parents and what they wait for: for a tree, and to add them elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.limits import Items, Name, Rows
from fleet.domain.task import (
    LANDED,
    Directory,
    Spec,  # imported at run time: a client reads the types of a reply
    TaskState,
)
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import PAGE, task_in_view
from fleet.operations.tasks.list import ListTasks, Statuses, list_tasks
from fleet.operations.tasks.rows import TaskRow, rows

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context


@dataclass(frozen=True, slots=True)
class TaskNode:
    """`after`: the tasks that it waits for, or waited for; `unmet`: those that are not done.

    `needs`: the tasks `after`, as one writes them: `t-3:landed` until the work of t-3 has landed.
    `prompt` and `spec` are there if they were asked for.
    """

    id: str
    task: TaskRow
    parent: str
    join: str
    after: tuple[str, ...]
    unmet: tuple[str, ...] = ()
    prompt: str = ""
    spec: Spec = Spec()  # frozen
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphTasks(Request[tuple[TaskNode, ...]]):
    """Like `task.list`, newest first. `tasks`: only these, at most 200; the others count no more.

    `whole`: with what each asks for.
    """

    project: Directory = ""
    team: Name = ""
    all: bool = False
    statuses: Statuses = ()
    before: str = ""
    limit: Rows = 50
    tasks: Annotated[tuple[str, ...], Items(PAGE)] = ()
    whole: bool = False


def graph(context: Context, request: GraphTasks) -> tuple[TaskNode, ...]:
    if request.tasks:
        named = (task_in_view(context, name) for name in request.tasks)
        tasks = [task for task in named if task is not None]
        listed = rows(context, tasks)
    else:
        query = ListTasks(
            request.project,
            request.team,
            request.all,
            request.statuses,
            request.before,
            request.limit,
        )
        listed = list(list_tasks(context, query))
        by_id = context.store.tasks_by_id([row.id for row in listed])
        tasks = [by_id[row.id] for row in listed]
    needs = context.store.tasks_by_id(sorted({need for task in tasks for need in task.after}))
    done = {need.id for need in needs.values() if need.state is TaskState.DONE}
    done |= {f"{need.id}{LANDED}" for need in needs.values() if need.tally.landed}
    return tuple(
        TaskNode(
            task.id,
            row,
            task.parent,
            str(task.join or ""),
            task.after,
            tuple(n for n, need in zip(task.after, task.needs, strict=True) if need not in done),
            task.prompt if request.whole else "",
            task.spec if request.whole else Spec(),
            task.needs,
        )
        for task, row in zip(tasks, listed, strict=True)
    )


OPERATIONS = (
    Operation(
        "task.graph",
        GraphTasks,
        Permission.READ,
        graph,
        "List the tasks with their parents and what they wait for, newest first.",
    ),
)
