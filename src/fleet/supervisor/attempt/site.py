"""Where a run works: the workspace it reuses, and the branches to merge into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.run import workspace_of
from fleet.ports import Merge, Site

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.ports import Store


def last_started(store: Store, run: Run) -> Run | None:
    """The newest earlier run of the same task whose coder started."""
    earlier = (r for r in reversed(store.runs(run.task)) if r.id != run.id)
    return next((r for r in earlier if r.started_at), None)


def site_of(store: Store, task: Task, run: Run, last: Run | None) -> Site:
    """Where the run works: in the last run's workspace if its processes are gone, else a new one.

    A new workspace starts from the task's checkpoint.
    """
    reusable = (
        last is not None
        and last.host == run.host
        and last.workspace is not None
        and (last.outcome is None or last.outcome.gone)
    )
    checkpoint = task.tally.checkpoint
    return Site(
        task,
        run,
        merges=merges_of(store, task.after, task.project),
        previous=last.workspace if last and reusable else None,
        start=checkpoint.commit if checkpoint and last else "",
    )


def merges_of(store: Store, after: Sequence[str], project: str) -> tuple[Merge, ...]:
    """The branches of these tasks, if they are in this project."""
    needs = store.tasks_by_id(after) if after else {}
    merges = []
    for need in (needs[i] for i in after if i in needs and needs[i].project == project):
        workspace = workspace_of(store.runs(need.id))
        commit = need.tally.checkpoint.commit if need.tally.checkpoint else ""
        if workspace and workspace.branch:
            merges.append(Merge(workspace.branch, commit))
    return tuple(merges)
