"""A team's tasks with what claude-fleet's clients show of each, at the cost of a plain list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.limits import Name, Rows
from fleet.domain.task import TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import team_in_view, the_task
from fleet.operations.tasks.rows import TaskRow, rows
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context


@dataclass(frozen=True, slots=True)
class TeamTask:
    """`owner`: the member who does it by hand, or the run that works on it.

    `updated_at`: the time of the newest event about it.
    """

    id: str
    task: TaskRow
    prompt: str
    owner: str
    author: str
    after: tuple[str, ...]
    updated_at: Time


@dataclass(frozen=True, slots=True)
class ListTeamTasks(Request[tuple[TeamTask, ...]]):
    """Ended tasks too, newest first. `before`: the last task of the page before."""

    team: Name = ""
    limit: Rows = 50
    before: str = ""


def list_team_tasks(context: Context, request: ListTeamTasks) -> tuple[TeamTask, ...]:
    team, limit = team_in_view(context, request.team), request.limit
    before = the_task(context, request.before, Permission.READ).id if request.before else ""
    tasks = context.store.tasks(TaskQuery(team=team, before=before, limit=limit))
    changed = context.store.changed_at([task.id for task in tasks])
    return tuple(
        TeamTask(
            id=task.id,
            task=row,
            prompt=task.prompt,
            owner=task.spec.assignee or (task.run_id if task.state is TaskState.RUNNING else ""),
            author=task.author,
            after=task.after,
            updated_at=changed.get(task.id, task.created_at),
        )
        for task, row in zip(tasks, rows(context, tasks), strict=True)
    )


OPERATIONS = (
    Operation(
        "task.team",
        ListTeamTasks,
        Permission.READ,
        list_team_tasks,
        "List a team's tasks with their prompts, owners and latest changes.",
    ),
)
