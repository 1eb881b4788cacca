"""Rebuild a task and its run from their folders, when the store has lost their rows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fleet.domain.data import dataclass
from fleet.domain.errors import Refused
from fleet.domain.run import Run, RunState, Workspace
from fleet.domain.task import Limits, Mode, Spec, Tally, Task, TaskState
from fleet.operations.shared.choice import choose_for

if TYPE_CHECKING:
    from fleet.adapters.home.home import Home
    from fleet.config import Loaded


@dataclass(frozen=True, slots=True)
class Traces:
    """A run's files. `order`: how it was launched (launch.json); `told`: the copy of its task."""

    run: str
    task: str
    at: int  # when it was launched
    order: dict[str, Any]
    told: dict[str, Any]

    @staticmethod
    def of(home: Home, run_id: str) -> Traces | None:
        """Read the files of a run; None when they cannot be read or are not about this run."""
        task_id = run_id.rpartition(".")[0]
        file = home.runs / run_id / "launch.json"
        try:
            order = order_of(home, run_id)
            written = dict(json.loads((home.path / "tasks" / task_id / "task.json").read_bytes()))
            at = file.stat().st_mtime_ns // 1000
        except (OSError, ValueError, TypeError):
            return None
        env = order.get("env", {})
        if env.get("FLEET_RUN_ID") != run_id or written.get("id") != task_id:
            return None
        return Traces(run_id, task_id, at, order, written)

    @property
    def env(self) -> dict[str, str]:
        return dict(self.order["env"])

    @property
    def root(self) -> str:
        return self.env.get("FLEET_WORKSPACE", "")

    @property
    def branch(self) -> str:
        return self.env.get("FLEET_BRANCH", "")

    @property
    def project(self) -> str:
        return str(self.told.get("project") or "")

    @property
    def terminal(self) -> bool:
        return bool(self.order.get("terminal"))


def order_of(home: Home, run_id: str) -> dict[str, Any]:
    return dict(json.loads((home.runs / run_id / "launch.json").read_bytes()))


def task_of(traces: Traces, row: Task | None) -> Task:
    """Return the task as running this run; `row` is what the store has under its id.

    Raise `Refused` when that is a newer task.
    """
    number = int(traces.run.rpartition(".")[2])
    if row is None:
        return _rebuilt_task(traces, number)
    if row.created_at > traces.at:
        raise Refused(
            f"The id {row.id} belongs to a newer task now.",
            fix=f"Its files are in {traces.root or traces.order.get('cwd')}.",
        )
    return replace(row, state=TaskState.RUNNING, tally=replace(row.tally, runs=number))


def _rebuilt_task(traces: Traces, number: int) -> Task:
    written = traces.told
    spec = Spec(
        agent=str(written.get("agent") or ""),
        coder=str(written.get("coder") or ""),
        model=str(written.get("model") or ""),
        priority=int(written.get("priority") or 0),
        labels=tuple(map(str, written.get("labels") or ())),
        cwd=str(written.get("cwd") or ""),
        branch=traces.branch,
        review=traces.terminal,
        limits=Limits(attempts=1) if traces.terminal else Limits(),
        mode=Mode.TERMINAL if traces.terminal else Mode.QUEUED,
        in_place=not traces.root,
    )
    return Task(
        id=traces.task,
        version=0,
        state=TaskState.RUNNING,
        title=str(written.get("title") or traces.task),
        prompt=str(written.get("description") or ""),
        project=traces.project,
        author=str(written.get("author") or ""),
        created_at=_moment(written.get("created_at")) or traces.at,
        team=str(written.get("team") or "local"),
        spec=spec,
        tally=Tally(runs=number),
    )


def run_of(traces: Traces, task: Task, world: Loaded, *, host: str, base: str) -> Run:
    """Return the run without a holder, so that this host's supervisor adopts or settles it."""
    choice = choose_for(world, task)
    path = str(traces.order.get("cwd", ""))
    workspace = Workspace(path)
    if traces.root:
        workspace = Workspace(path, traces.root, traces.branch, base, made=True)
    return Run(
        id=traces.run,
        version=0,
        task=task.id,
        state=RunState.RUNNING,
        choice=choice,
        host=host,
        holder="",
        claimed_at=traces.at,
        workspace=workspace,
        started_at=traces.at,
    )


def _moment(text: object) -> int:
    try:
        return int(datetime.fromisoformat(str(text)).timestamp() * 1_000_000)
    except ValueError:
        return 0
