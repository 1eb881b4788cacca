"""Agents at work: tasks with a run, as `fleet list` shows them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.limits import Rows
from fleet.domain.task import Directory, Mode
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import PAGE, team_in_view, the_task
from fleet.operations.shared.pages import pages
from fleet.operations.tasks.rows import UsageRow, rows, usage_row
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from fleet.domain.run import Progress, Run
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.operations.tasks.rows import TaskRow


@dataclass(frozen=True, slots=True)
class AgentRow:
    """`batch` is the task that it is part of; `terminal`: people can attach to it.

    `depth`: how many agents are between a person and this one. `session`: the coder's own id of the
    conversation. `added`, `removed`: lines that its task has changed, once a run has succeeded.
    `setup`: the set-up command that its workspace is at, since `setup_at`.
    """

    task: str
    run: str
    branch: str
    title: str
    status: str
    coder: str
    model: str
    terminal: bool
    batch: str
    project: str
    host: str
    path: str
    started_at: Time | None
    ended_at: Time | None
    last: str
    usage: UsageRow
    team: str
    depth: int = 0
    session: str = ""
    added: int | None = None
    removed: int | None = None
    setup: str = ""
    setup_at: Time | None = None


@dataclass(frozen=True, slots=True)
class ListAgents(Request[tuple[AgentRow, ...]]):
    """Newest first; `all`: also those that are done or cancelled.

    Empty `project`: of every project. `before`: the last task of the page before.
    """

    project: Directory = ""
    all: bool = False
    limit: Rows = PAGE
    before: str = ""


def list_agents(context: Context, request: ListAgents) -> tuple[AgentRow, ...]:
    store = context.store
    tasks = _agents(context, request)
    run_ids = [t.run_id for t in tasks if t.run_id]
    runs, progress = store.runs_by_id(run_ids), store.progress(run_ids)
    return tuple(
        _row(task, row, runs.get(task.run_id), progress.get(task.run_id))
        for task, row in zip(tasks, rows(context, tasks), strict=True)
    )


def _agents(context: Context, request: ListAgents) -> list[Task]:
    limit, team = request.limit, team_in_view(context)
    before = the_task(context, request.before, Permission.READ).id if request.before else ""
    query = TaskQuery((), request.project, team, before=before, limit=limit)
    query = query._replace(at_work=not request.all)
    tasks = (task for page in pages(context.store.tasks, query) for task in page)
    return list(islice((task for task in tasks if task.join is None), limit))


def _row(task: Task, row: TaskRow, run: Run | None, progress: Progress | None) -> AgentRow:
    workspace = run.workspace if run else None
    usage = run.outcome.usage if run and run.outcome else progress.usage if progress else None
    return AgentRow(
        task=row.id,
        run=run.id if run else "",
        branch=workspace.branch if workspace and workspace.branch else task.spec.branch,
        title=row.title,
        status=row.status,
        coder=row.coder,
        model=row.model,
        terminal=task.spec.mode == Mode.TERMINAL,
        batch=task.parent,
        project=row.project,
        host=run.host if run else "",
        path=workspace.path if workspace else "",
        started_at=run.started_at or None if run else None,
        ended_at=run.ended_at or None if run else None,
        last=_last(row),
        usage=usage_row(usage),
        team=row.team,
        depth=task.depth,
        session=(progress.session if progress else "") or _kept(task),
        added=row.run.added if row.run else None,
        removed=row.run.removed if row.run else None,
        setup=row.run.setup if row.run else "",
        setup_at=row.run.heard_at if row.run and row.run.setup else None,
    )


def _last(row: TaskRow) -> str:
    if row.run is None:
        return ""
    return f"setting up: {row.run.setup}" if row.run.setup else row.run.last


def _kept(task: Task) -> str:
    """The coder's session that the task's next run will continue."""
    return task.tally.checkpoint.session if task.tally.checkpoint else ""


OPERATIONS = (
    Operation("agent.list", ListAgents, Permission.READ, list_agents, "List the agents at work."),
)
