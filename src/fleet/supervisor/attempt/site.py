"""Where a run works: the workspace it reuses, and the branches to merge into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.ports import Merge, Site

if TYPE_CHECKING:
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.ports import Store


def last_started(store: Store, run: Run) -> Run | None:
    """The newest earlier run of the same task whose coder started."""
    earlier = (r for r in reversed(store.runs(run.task)) if r.id != run.id)
    return next((r for r in earlier if r.started_at), None)


def site_of(store: Store, task: Task, run: Run, last: Run | None) -> Site:
    """Reuse the last run's workspace once its processes are gone, else its checkpoint."""
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
        merges=_merges(store, task),
        previous=last.workspace if last and reusable else None,
        start=checkpoint.commit if checkpoint and last else "",
    )


def _merges(store: Store, task: Task) -> tuple[Merge, ...]:
    """The branches of the tasks it waited for, if they are in the same project."""
    needs = store.tasks_by_id(task.after) if task.after else {}
    merges = []
    for need in (needs[i] for i in task.after if needs[i].project == task.project):
        workspace = next((r.workspace for r in store.runs(need.id)[::-1] if r.workspace), None)
        commit = need.tally.checkpoint.commit if need.tally.checkpoint else ""
        if workspace and workspace.branch:
            merges.append(Merge(workspace.branch, commit))
    return tuple(merges)
