"""What live branches would conflict with, before anybody tries to land them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.limits import Rows
from fleet.domain.task import TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.landing.review import brings_of, is_away, onto_of, outlooks_of
from fleet.operations.shared.names import team_in_view
from fleet.operations.tasks.rows import rows
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

MOST_TASKS = 500  # the newest that run, are done or in review are looked at
STATES = (TaskState.RUNNING, TaskState.DONE, TaskState.REVIEW)


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """`conflicts`: files in which it conflicts with `onto` now; `rivals`: tasks it conflicts with.

    `ready`: whether it could land now: it is done, and conflicts with nothing on its branch.
    """

    task: str
    title: str
    status: str
    onto: str
    branch: str
    conflicts: tuple[str, ...]
    rivals: tuple[str, ...]
    ready: bool


@dataclass(frozen=True, slots=True)
class ForecastLandings(Request[tuple[ForecastRow, ...]]):
    """Work that runs, is in review, or is done and not landed; of the newest 500 such tasks.

    All branches are tried in one git, against the branch they would land on and against each
    other. `project`: only there. Work on other machines is left out.
    """

    project: str = ""
    limit: Rows = 100


def forecast(context: Context, request: ForecastLandings) -> tuple[ForecastRow, ...]:
    tasks, runs = _with_branch(context, request.project)
    brings = {task: tuple(brings_of(task, tasks)) for task in tasks}
    outlooks, _ = outlooks_of(context, tasks, runs, brings)
    chosen = [tasks[i] for i in tasks if i in outlooks][: request.limit]
    statuses = {row.id: row.status for row in rows(context, chosen)}
    return tuple(
        ForecastRow(
            task=task.id,
            title=task.title,
            status=statuses[task.id],
            onto=onto_of(context, task, runs[task.id]),
            branch=_branch(runs[task.id]),
            conflicts=outlooks[task.id].conflicts,
            rivals=outlooks[task.id].rivals,
            ready=task.state is TaskState.DONE and not outlooks[task.id].conflicts,
        )
        for task in chosen
    )


def _branch(run: Run) -> str:
    return run.workspace.branch if run.workspace else ""


def _with_branch(context: Context, project: str) -> tuple[dict[str, Task], dict[str, Run]]:
    query = TaskQuery(STATES, project, team_in_view(context), limit=MOST_TASKS)
    tasks = {t.id: t for t in context.store.tasks(query) if is_away(t)}
    known = context.store.runs_by_id([task.run_id for task in tasks.values()])
    runs = {run.task: run for run in known.values() if _branch(run)}
    return {i: task for i, task in tasks.items() if i in runs}, runs


OPERATIONS = (
    Operation(
        "land.forecast", ForecastLandings, Permission.READ, forecast,
        "Say which live branches would conflict.", outside=True,
    ),
)  # fmt: skip
