"""Find what is inconsistent on this host; adopt it or list it with its fix. Removes no file."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.app.workspaces.lost_rows import Traces, order_of, run_of, task_of
from fleet.domain.access import SUPERVISOR
from fleet.domain.errors import Conflict, FleetError, NotFound
from fleet.domain.event import Event, Kind
from fleet.domain.run import RunState
from fleet.domain.task import Mode, TaskState
from fleet.ports import Presence, Put, TaskQuery
from fleet.supervisor.attempt.settle import is_recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.app.app import App
    from fleet.domain.run import Run
    from fleet.domain.task import Task

MAX_TASKS = 10_000
HANGUP = 8.0  # seconds: a keeper gives its coder five when their terminal is gone
GOING = (str(TaskState.OPEN), str(TaskState.RUNNING), str(TaskState.REVIEW))
FOREVER = 36500.0  # days: no worktree is this old, so only orphans are found


class Repairs:
    """One round of repairs. It remembers the runs that were live when it began."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._notes: list[str] = []
        self._live: dict[str, Run] = {}

    def adopt(self) -> None:
        """Record runs again whose rows are missing while they are alive or have a worktree."""
        for run_id in self._without_row():
            traces = Traces.of(self._app.home, run_id)
            if traces is None or not self._matters(traces):
                continue
            try:
                self._insert(traces)
            except (FleetError, OSError) as error:
                self._notes.append(
                    f"{run_id} is missing from the store, and cannot be recorded: {error}"
                )
                continue
            self._notes.append(
                f"{run_id} was missing from the store; it is recorded again as {traces.task}."
            )
        host = self._app.home.host_id()
        self._live = {run.id: run for run in self._app.store.live_runs(host=host)}

    def cut_off(self) -> list[str]:
        """Return tasks whose immediate start was interrupted, because the command was killed."""
        store = self._app.store
        ready = store.candidates(now=store.now(), limit=MAX_TASKS)
        at_once = [t.id for t in ready if t.spec.mode != Mode.QUEUED]
        return [*at_once, *(run.task for run in self._live.values() if not self._has_begun(run))]

    def _has_begun(self, run: Run) -> bool:
        """Whether the run's program has started and has got its prompt."""
        is_prompted = not self._in_terminal(run) or not self._app.keepers.first(run.id)
        started = run.state is RunState.RUNNING
        return started and (is_prompted or is_recorded(self._app.store, run, Kind.RUN_PROMPTED))

    def await_hung_up(self) -> None:
        """Wait until runs whose terminals are gone have been ended by their keepers."""
        open_panes = {pane.run for pane in self._app.terminals.tmux.panes()}
        until = time.monotonic() + HANGUP
        for run in self._live.values():
            if run.id in open_panes or not self._in_terminal(run):
                continue
            while self._looks(run.id, Presence.ALIVE) and time.monotonic() < until:
                time.sleep(0.05)

    def notes(self) -> tuple[str, ...]:
        self._notes += self._ended()
        tasks = self._app.store.tasks(TaskQuery(GOING, limit=MAX_TASKS))
        for task in tasks:
            if note := self._placed(task):
                self._notes.append(note)
        self._notes += self._unowned()
        return tuple(self._notes)

    def _without_row(self) -> list[str]:
        """Return each task's newest run, by the folders here, that is missing in the store."""
        newest: dict[str, int] = {}
        folders = self._app.home.runs
        for folder in folders.iterdir() if folders.is_dir() else ():
            if match := re.fullmatch(r"(t-[0-9]+)\.([0-9]+)", folder.name):
                newest[match[1]] = max(newest.get(match[1], 0), int(match[2]))
        known = self._app.store.tasks_by_id(sorted(newest))
        lost = []
        for task_id, number in sorted(newest.items()):
            run_id, task = f"{task_id}.{number}", known.get(task_id)
            if task is None or task.tally.runs < number or not self._has(task.run_id):
                lost.append(run_id)
        return lost

    def _has(self, run_id: str) -> bool:
        with suppress(NotFound):
            return bool(self._app.store.run(run_id))
        return False

    def _matters(self, traces: Traces) -> bool:
        """Whether the run is alive or has a worktree; otherwise its row is not worth restoring."""
        root = traces.root
        return self._looks(traces.run, Presence.ALIVE) or bool(root and Path(root).is_dir())

    def _looks(self, run_id: str, presence: Presence) -> bool:
        return self._app.keepers.look(run_id).presence is presence

    def _insert(self, traces: Traces) -> None:
        store = self._app.store
        row = store.tasks_by_id([traces.task]).get(traces.task)
        world = self._app.worlds(traces.project)
        task = task_of(traces, row)
        run = run_of(traces, task, world, host=self._app.home.host_id(), base=self._base(traces))
        fact = Event(Kind.RUN_ADOPTED, task.id, SUPERVISOR, store.now(), run.id, {"why": "no row"})
        store.commit([Put(task), Put(run)], [fact])

    def _base(self, traces: Traces) -> str:
        """Return the commit at which the branch began, by its reflog."""
        from fleet.adapters.git.repo import Repo

        with suppress(FleetError, OSError):
            repo = Repo.of(Path(traces.project))
            words = ("log", "--walk-reflogs", "--format=%H", f"refs/heads/{traces.branch}")
            commits = repo.git(*words, check=False).out.split()
            return commits[-1] if commits else repo.commit(f"refs/heads/{traces.branch}")
        return ""

    def _in_terminal(self, run: Run) -> bool:
        with suppress(OSError, ValueError):
            return bool(order_of(self._app.home, run.id).get("session"))
        return False

    def _ended(self) -> Iterator[str]:
        """Return a message for each run that was live when this began and has ended since."""
        for run in self._live.values():
            ended = self._app.store.run(run.id)
            if ended.live or ended.outcome is None:
                continue
            where = f" Its work is in {ended.workspace.path}." if ended.workspace else ""
            yield (
                f"{run.task} has ended: {ended.outcome.detail or ended.outcome.ending}{where}"
                f" Start it again: fleet retry {run.task}, then fleet list --repair."
            )

    def _placed(self, task: Task) -> str:
        """Return what is wrong with the task's worktree; empty: it is where it was made."""
        run = self._newest(task)
        workspace = run.workspace if run else None
        if run is None or workspace is None or not workspace.made or Path(workspace.root).is_dir():
            return ""
        name = f"{task.id} ({workspace.branch})"
        if Path(f"{workspace.root}.removing").exists():
            return f"The removal of the worktree of {name} was cut off. Finish it: fleet gc"
        if Path(f"{workspace.root}.making").exists():
            return f"The worktree of {name} is being made."
        from fleet.adapters.git.find_moved import find_worktree

        moved = find_worktree(workspace, _where(task), self._mark(run.id))
        if moved is not None and self._move(run.id, moved):
            return f"The worktree of {name} was moved to {moved}, which Fleet uses now."
        return (
            f"The worktree of {name} is gone: {workspace.root}. What was committed is on its branch; "
            f"get it back: git -C {_where(task)} worktree add --force {workspace.root} {workspace.branch}. "
            f"If it was moved: git -C {_where(task)} worktree repair ITS-NEW-PLACE, then "
            "fleet list --repair."
        )

    def _newest(self, task: Task) -> Run | None:
        host = self._app.home.host_id()
        runs = [r for r in self._app.store.runs(task.id) if r.host == host and r.workspace]
        return runs[-1] if runs else None

    def _mark(self, run_id: str) -> str:
        with suppress(OSError, ValueError):
            return str(order_of(self._app.home, run_id).get("mark", ""))
        return ""

    def _move(self, run_id: str, root: Path) -> bool:
        for _ in range(10):
            run = self._app.store.run(run_id)
            assert run.workspace is not None
            old = run.workspace
            within = Path(old.path).relative_to(old.root)
            moved = replace(old, root=str(root), path=str(root / within))
            with suppress(Conflict):  # a supervisor has just changed it
                self._app.store.commit([Put(replace(run, workspace=moved))], [])
                return True
        return False

    def _unowned(self) -> Iterator[str]:
        for one in self._app.workspaces.tidy(days=FOREVER, dry_run=True).orphans:
            yield f"The {one.what} {one.name} belongs to no task; it stays. {_way(one.what, one.name)}"
        tmux = self._app.terminals.tmux
        for pane in tmux.panes():
            if not self._has(pane.run):
                look = tmux.line("attach-session", "-t", f"={pane.session}")
                end = tmux.line("kill-session", "-t", f"={pane.session}")
                yield f"The session {pane.session} belongs to no task; it stays. Look: {look}  End: {end}"


def _way(what: str, name: str) -> str:
    if what == "branch":
        return f"Look: git log {name}"
    return f"Look into it, then remove it: git worktree remove {name}"


def _where(task: Task) -> str:
    return task.spec.cwd or task.project
