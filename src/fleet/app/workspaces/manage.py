"""What is done with workspaces besides making them: shown, merged, removed, brought back, tidied."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError, Refused
from fleet.domain.task import ENDED
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fleet.adapters.git.checkout import GitCheckout
    from fleet.adapters.git.kept import Kept
    from fleet.adapters.git.land import Merged, Pushed
    from fleet.adapters.git.repo import Repo
    from fleet.adapters.git.restore import Restored
    from fleet.app import App
    from fleet.app.workspaces.repair import Repairs
    from fleet.domain.run import Run, Workspace
    from fleet.domain.task import Task

MAX_TASKS = 10_000
SECOND = 1_000_000
DAY = 86_400 * SECOND


@dataclass(frozen=True, slots=True)
class Cleared:
    """What became of a task's workspaces here, up to where something went wrong."""

    task: str
    paths: tuple[str, ...] = ()  # those that are gone, or wait in the pool
    kept: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()  # deleted
    said: tuple[str, ...] = ()
    error: FleetError | OSError | None = None


@dataclass(frozen=True, slots=True)
class KeptWork:
    """What was saved of a task; `id` is how it is asked for."""

    id: str
    ref: str
    task: str
    at: int
    branch: str
    base: str
    head: str
    commit: str
    uncommitted: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Orphan:
    """Something of ours that no run owns. It is listed, never removed."""

    what: str  # `directory` or `branch`
    name: str
    project: str = ""


@dataclass(frozen=True, slots=True)
class Tidied:
    cleared: tuple[Cleared, ...]
    orphans: tuple[Orphan, ...]
    dry_run: bool
    pooled: tuple[str, ...] = ()  # worktrees that waited in the pool


class Workspaces:
    def __init__(self, app: App) -> None:
        self._app = app

    def repairs(self) -> Repairs:
        from fleet.app.workspaces.repair import Repairs

        return Repairs(self._app)

    def of(self, task: Task) -> Workspace:
        """The newest of this task on this host."""
        workspace = next((r.workspace for r in reversed(self._runs(task)) if r.workspace), None)
        if workspace is None:
            raise Refused(
                f"{task.id} has no workspace here.",
                fix=f"`fleet show {task.id}` says where it ran.",
                code="no_workspace",
            )
        return workspace

    def diff(self, task: Task, *, stat: bool) -> str:
        from fleet.adapters.git.land import diff

        return diff(self.of(task), _project(task), stat=stat)

    def merge(self, task: Task, onto: str) -> Merged:
        from fleet.adapters.git.land import merge

        return merge(self.of(task), _project(task), onto)

    def push(self, task: Task) -> Pushed:
        from fleet.adapters.git.land import push

        return push(self.of(task), _project(task))

    def not_merged(self, limit: int) -> list[tuple[str, str]]:
        """Done tasks of this project, newest first, whose branch has what HEAD has not."""
        from fleet.adapters.git.repo import text_of
        from fleet.config import checkout_top

        project = self._app.loaded.project or checkout_top(self._app.cwd)
        try:
            reply = self.repo().git(
                "for-each-ref", "--no-merged=HEAD", "--format=%(refname:lstrip=2)", "refs/heads"
            )
        except (FleetError, OSError):  # no repository, or one without a commit
            return []
        left = set(text_of(reply.raw).split())
        query = TaskQuery(("done",), str(project or ""), limit=limit)
        done = self._app.store.tasks(query) if left else []
        branches = {task.id: {w.branch for w in self._made(task)} & left for task in done}
        return [(task, min(names)) for task, names in branches.items() if names]

    def repo(self) -> Repo:
        from fleet.adapters.git.repo import Repo

        return Repo.of(self._app.cwd)

    def kept(self) -> list[KeptWork]:
        from fleet.adapters.git.kept import list_kept

        return [_row(kept) for kept in list_kept(self.repo())]

    def restore(self, name: str, *, branch: str, into: Path | None) -> Restored:
        from fleet.adapters.git.kept import find_kept
        from fleet.adapters.git.restore import restore

        repo = self.repo()
        return restore(repo, find_kept(repo, name), branch=branch, into=into)

    def drop(self, name: str) -> KeptWork:
        from fleet.adapters.git.kept import drop, find_kept

        repo = self.repo()
        kept = find_kept(repo, name)
        drop(repo, kept)
        return _row(kept)

    def remove_all(self, tasks: Sequence[str], *, delete_branch: bool = False) -> list[Cleared]:
        """Every workspace of each task on this host, side by side; their processes are gone."""
        from fleet.adapters.processes.threads import side_by_side

        rows = [self._app.store.task(task) for task in tasks]
        return side_by_side([self._removal(task, delete_branch=delete_branch) for task in rows])

    def _removal(self, task: Task, *, delete_branch: bool) -> Callable[[], Cleared]:
        """What it needs of the store it has then, so that it can be done in a thread."""
        try:
            checkout, made = self._app.checkout(task.project), self._made(task)
        except (FleetError, OSError) as error:
            failed = Cleared(task.id, error=error)
            return lambda: failed
        return partial(_remove, checkout, task, made, delete_branch=delete_branch)

    def tidy(self, *, days: float, dry_run: bool) -> Tidied:
        """Finish interrupted removals, remove what ended tasks left, trim the pools, list what nobody owns."""
        tasks = self._app.store.tasks(TaskQuery(limit=MAX_TASKS))
        before = self._app.store.now() - int(days * DAY)
        cleared = []
        for task in tasks:
            if workspaces := self._left(task, before):
                done = Cleared(task.id, workspaces) if dry_run else self._clear(task)
                cleared.append(done)
        pooled = dict.fromkeys(self._trim_pools(tasks, before / SECOND, dry_run=dry_run))
        orphans = dict.fromkeys(self._orphans(tasks))  # projects may share a place
        return Tidied(tuple(cleared), tuple(orphans), dry_run, tuple(pooled))

    def _trim_pools(self, tasks: list[Task], before: float, *, dry_run: bool) -> Iterator[str]:
        for project in filter(None, self._projects(tasks)):
            with suppress(FleetError, OSError):
                checkout = self._app.checkout(project)
                yield from map(str, checkout.trim_pool(Path(project), before, dry_run=dry_run))

    def _projects(self, tasks: list[Task]) -> list[str]:
        from fleet.config import checkout_top

        here = str(self._app.loaded.project or checkout_top(self._app.cwd) or "")
        return sorted({t.project for t in tasks} | {"", here})

    def _left(self, task: Task, before: int) -> tuple[str, ...]:
        """Its directories that may go: it ended long ago, or somebody had begun to remove them."""
        roots = [w.root for w in self._made(task)]
        begun = tuple(root for root in roots if Path(f"{root}.removing").exists())
        if task.state in ENDED and task.tally.ended_at <= before:
            return tuple(root for root in roots if os.path.lexists(root) or root in begun)
        return begun

    def _clear(self, task: Task) -> Cleared:
        (done,) = self.remove_all([task.id], delete_branch=self._is_merged(task))
        notes = (*done.said, str(done.error)) if done.error is not None else done.said
        return replace(done, said=notes, error=None)

    def _is_merged(self, task: Task) -> bool:
        from fleet.adapters.git.remove import is_saved
        from fleet.adapters.git.repo import Repo

        with suppress(FleetError, OSError):
            repo = Repo.of(Path(_project(task)))
            made = [w.branch for w in self._made(task) if repo.has_branch(w.branch)]
            return all(is_saved(repo, repo.commit(f"refs/heads/{b}"), b) for b in made)
        return False

    def _orphans(self, tasks: list[Task]) -> Iterator[Orphan]:
        made = [w for task in tasks for w in self._made(task)]
        roots = {w.root for w in made}
        for project in self._projects(tasks):
            with suppress(FleetError, OSError):
                settings = self._app.worlds(project).settings.workspace
                yield from _directories(Path(settings.root), roots)
                yield from _branches(project, settings.branch_prefix, {w.branch for w in made})

    def _made(self, task: Task) -> list[Workspace]:
        workspaces = {r.workspace.root: r.workspace for r in self._runs(task) if r.workspace}
        return [w for w in workspaces.values() if w.made]

    def _runs(self, task: Task) -> list[Run]:
        here = self._app.home.host_id()
        return [run for run in self._app.store.runs(task.id) if run.host == here]


def _remove(
    checkout: GitCheckout, task: Task, made: Sequence[Workspace], *, delete_branch: bool
) -> Cleared:
    project, cleared = _project(task), Cleared(task.id)
    for workspace in made:
        try:
            done = checkout.remove(
                workspace, task=task.id, project=project, delete_branch=delete_branch
            )
        except (FleetError, OSError) as error:
            if not isinstance(error, Refused) or error.code != "not_ours":
                return replace(cleared, error=error)
            cleared = replace(cleared, said=(*cleared.said, str(error)))  # a person moved it
            continue
        gone = (done.root,) if done.removed or done.parked else ()
        branch = (done.branch,) if done.branch_deleted else ()
        cleared = replace(
            cleared,
            paths=cleared.paths + gone,
            kept=cleared.kept + done.kept,
            branches=cleared.branches + branch,
            said=cleared.said + done.said,
        )
    return cleared


def _row(kept: Kept) -> KeptWork:
    snapshot = kept.snapshot
    return KeptWork(
        kept.id, kept.ref, kept.task, kept.at * 1_000_000, snapshot.branch, snapshot.base,
        snapshot.head, kept.commit, snapshot.uncommitted, snapshot.notes,
    )  # fmt: skip


def _project(task: Task) -> str:
    return task.spec.cwd or task.project


def _directories(worktrees: Path, owned: set[str]) -> Iterator[Orphan]:
    if not worktrees.is_dir():
        return
    for folder in sorted(p for p in worktrees.iterdir() if p.is_dir() and not p.is_symlink()):
        homes = sorted(folder.iterdir()) if folder.name == "pool" else [folder]
        for home in homes:
            for path in sorted(p for p in home.iterdir() if p.is_dir()):
                begun = str(path).removesuffix(".removed") in owned
                parked = path.with_name(f"{path.name}.parked").exists()
                if str(path) not in owned and not begun and not parked:
                    yield Orphan("directory", str(path))


def _branches(project: str, prefix: str, owned: set[str]) -> Iterator[Orphan]:
    from fleet.adapters.git.repo import Repo, text_of

    if not project or not prefix:
        return
    reply = Repo.of(Path(project)).git("for-each-ref", "--format=%(refname)", "refs/heads")
    for ref in text_of(reply.raw).split():
        name = ref.removeprefix("refs/heads/")
        if name.startswith(prefix) and name not in owned:
            yield Orphan("branch", name, project)
