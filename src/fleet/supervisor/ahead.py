"""Workspaces that are made while the slot of their task's model is busy.

A worktree and its set-up take from a tenth of a second to minutes. A task that waits only for a slot
gets its workspace meanwhile, so that its run starts as soon as the slot is free. The task stays in
the queue: who goes next is decided when the slot is free. A file records each workspace before it is
made, so that the next supervisor uses or removes it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.base.files import write_atomically
from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError
from fleet.domain.run import Workspace
from fleet.domain.task import Mode, TaskState, claim
from fleet.supervisor.attempt.site import site_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.domain.schedule import ReadyTask
    from fleet.domain.task import Task
    from fleet.ports import Job, Site
    from fleet.supervisor.parts import Parts, ThisSupervisor

MOST_PREPARED = 4  # workspaces that are made ahead at the same time


@dataclass(slots=True)
class Prepared:
    """A workspace made ahead.

    `merges`: the branches and commits to merge into it. `job`: the last job that made or removed it.
    """

    project: str
    cwd: str  # a directory in the repository of the workspace
    workspace: Workspace
    merges: list[list[str]] = field(default_factory=list)
    job: Job | None = None
    leaving: bool = False

    @property
    def busy(self) -> bool:
        return self.job is not None and not self.job.done()

    @property
    def failed(self) -> bool:
        """Whether making it failed; the checkout has then removed what it had made."""
        if self.job is None or self.leaving:
            return False
        try:
            self.job.result()
        except (FleetError, OSError):
            return True  # the task's run will fail the same way, and report it
        return False


class WorkspacesAhead:
    """Make workspaces ahead, unless `parts.ahead` is None or other hosts share the store.

    On a shared store each host would make a workspace for a task that only one of them gets, and two
    hosts that share a clone would disturb each other.
    """

    def __init__(self, parts: Parts, here: ThisSupervisor) -> None:
        self._parts, self._here = parts, here
        self._rows = (
            read_ahead(parts.ahead) if parts.ahead else {}
        )  # by task; from the last supervisor
        self._vain: set[str] = set()  # tasks whose workspace could not be made ahead

    def prepare(self, asks: Iterable[ReadyTask]) -> None:
        """Begin the workspaces of these tasks, which wait only for a slot; remove stale workspaces."""
        if self._parts.ahead is None:
            return
        self._look_again()
        if self._here.shared:
            return
        for ask in asks:
            if len(self._rows) >= MOST_PREPARED:
                return
            if ask.task.id not in self._rows and self._may(ask.task):
                self._begin(ask)

    def admits(self, ask: ReadyTask) -> bool:
        """Whether the task may be claimed now: its workspace is not being made or removed.

        If the workspace starts from outdated commits, begin to remove it and return False.
        """
        row = self._rows.get(ask.task.id)
        if row is None:
            return True
        if row.busy:
            return False
        if row.leaving or row.failed:
            self.forget(ask.task.id)
            return True
        if row.job is not None and self._is_current(row, ask):
            return True
        self._remove(ask.task.id, row)
        return False

    def workspace_of(self, task: str) -> Workspace | None:
        row = self._rows.get(task)
        return row.workspace if row and row.job and not row.busy and not row.leaving else None

    def hand_over(self, task: str) -> bool:
        """Give the workspace to the task's run, which was claimed; return whether it is ready."""
        workspace = self.workspace_of(task)
        self.forget(task)
        return workspace is not None and Path(workspace.path).is_dir()

    def forget(self, task: str) -> None:
        """Drop the record of a workspace that belongs to a run now, or is gone."""
        if self._rows.pop(task, None) is not None:
            self._write()

    def _may(self, task: Task) -> bool:
        fresh = not task.tally.runs and task.id not in self._vain
        return fresh and not task.spec.in_place and task.spec.mode == Mode.QUEUED

    def _site(self, ask: ReadyTask) -> Site:
        here = self._here
        task, run = claim(ask.task, ask.choice, host=here.host, holder=here.holder, slots=(), at=0)
        return site_of(self._parts.store, task, run, None)

    def _begin(self, ask: ReadyTask) -> None:
        checkout, task = self._parts.checkout(ask.task.project), ask.task.id
        try:
            site = self._site(ask)
            workspace = checkout.plan(site)
        except (FleetError, OSError):
            self._vain.add(task)  # its run will report what is wrong there
            return
        cwd = ask.task.spec.cwd or ask.task.project
        row = Prepared(ask.task.project, cwd, workspace, _merges(site))
        self._rows[task] = row
        self._write()
        row.job = self._parts.jobs.begin(partial(checkout.prepare, workspace, site))

    def _is_current(self, row: Prepared, ask: ReadyTask) -> bool:
        """Whether a workspace made now would start from the same commits."""
        try:
            site = self._site(ask)
            planned = self._parts.checkout(row.project).plan(site)
        except (FleetError, OSError):
            return False
        same = (planned.base, planned.onto, planned.repository) == (
            row.workspace.base,
            row.workspace.onto,
            row.workspace.repository,
        )
        return same and row.merges == _merges(site)

    def _look_again(self) -> None:
        """Remove the workspaces of tasks that no longer wait for their first run."""
        tasks = self._parts.store.tasks_by_id(sorted(self._rows)) if self._rows else {}
        for name, row in list(self._rows.items()):
            if row.busy:
                continue
            if row.leaving or row.failed:
                self._vain |= {name} if row.failed else set()
                self.forget(name)
            elif self._has_run_in(name, row.workspace, tasks.get(name)):
                self.forget(name)
            elif not self._waits(tasks.get(name)) or row.job is None:
                self._remove(name, row)

    def _waits(self, task: Task | None) -> bool:
        return task is not None and task.state is TaskState.OPEN and not task.tally.runs

    def _has_run_in(self, name: str, workspace: Workspace, task: Task | None) -> bool:
        """Whether a run has this workspace: the supervisor died between the claim and `forget`."""
        if task is None or not task.tally.runs:
            return False
        return any(run.workspace == workspace for run in self._parts.store.runs(name))

    def _remove(self, task: str, row: Prepared) -> None:
        checkout = self._parts.checkout(row.project)
        row.leaving = True
        discard = partial(checkout.discard, row.workspace, task=task, project=row.cwd)
        row.job = self._parts.jobs.begin(discard)

    def _write(self) -> None:
        if self._parts.ahead is None:
            return
        rows = {
            task: {
                "project": row.project,
                "cwd": row.cwd,
                "workspace": asdict(row.workspace),
                "merges": row.merges,
            }
            for task, row in self._rows.items()
        }
        write_atomically(self._parts.ahead, json.dumps(rows, indent=1) + "\n")


def read_ahead(file: Path) -> dict[str, Prepared]:
    """Return the recorded workspaces by task; the last supervisor may have died while making them."""
    try:
        rows = json.loads(file.read_text("utf-8"))
        return {
            task: Prepared(row["project"], row["cwd"], Workspace(**row["workspace"]), row["merges"])
            for task, row in rows.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # no such file, or not one that Fleet wrote


def _merges(site: Site) -> list[list[str]]:
    return [list(merge) for merge in site.merges]
