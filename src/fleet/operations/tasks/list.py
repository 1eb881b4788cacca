"""Lists of tasks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, nearest
from fleet.domain.task import SETTLED, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import how_many, team_in_view, the_task
from fleet.operations.shared.pages import pages
from fleet.operations.tasks.rows import STATE_OF, TaskRow, rows
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

IN_VIEW = tuple(str(state) for state in TaskState if state not in SETTLED)


@dataclass(frozen=True, slots=True)
class ListTasks(Request[tuple[TaskRow, ...]]):
    """`all`: also done and cancelled tasks. `statuses`: states, or statuses as a list shows them.

    `before`: the last task of the page before.
    """

    project: str = ""
    team: str = ""
    all: bool = False
    statuses: tuple[str, ...] = ()
    before: str = ""
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ReadyTasks(Request[tuple[TaskRow, ...]]):
    """In the order in which they start. `before`: the last task of the page before."""

    limit: int = 50
    before: str = ""


def list_tasks(context: Context, request: ListTasks) -> tuple[TaskRow, ...]:
    limit, team = how_many(request.limit), team_in_view(context, request.team)
    before = the_task(context, request.before, Permission.READ).id if request.before else ""
    query = TaskQuery(_states(request), request.project, team, before=before, limit=limit)
    matching = (row for page in pages(context.store.tasks, query) for row in rows(context, page))
    return tuple(islice((row for row in matching if _is_wanted(row, request.statuses)), limit))


def _states(request: ListTasks) -> tuple[str, ...]:
    for name in request.statuses:
        if name not in STATE_OF:
            fix = nearest(name, STATE_OF) or f"Choose one of: {', '.join(STATE_OF)}."
            raise BadInput(f"'{name}' is not a state of a task.", fix=fix)
    if request.statuses:
        return tuple(sorted({str(STATE_OF[name]) for name in request.statuses}))
    return () if request.all else IN_VIEW


def _is_wanted(row: TaskRow, statuses: tuple[str, ...]) -> bool:
    return not statuses or row.state in statuses or row.status in statuses


def ready(context: Context, request: ReadyTasks) -> tuple[TaskRow, ...]:
    limit, team = how_many(request.limit), team_in_view(context)
    last = the_task(context, request.before, Permission.READ) if request.before else None
    size = limit
    while True:  # other teams' tasks, and earlier pages, come first
        candidates = context.store.candidates(now=context.store.now(), limit=size)
        mine = [
            t for t in candidates if team in {"", t.team} and (not last or _turn(t) > _turn(last))
        ]
        if len(mine) >= limit or len(candidates) < size:
            return tuple(rows(context, mine[:limit]))
        size *= 4


def _turn(task: Task) -> tuple[int, int, int]:
    return task.spec.priority, task.created_at, int(task.id.removeprefix("t-"))


_READ = Permission.READ
OPERATIONS = (
    Operation("task.list", ListTasks, _READ, list_tasks, "List the tasks, newest first."),
    Operation("task.ready", ReadyTasks, _READ, ready, "List the tasks that could start now."),
)
