"""Show, merge, remove, restore and tidy workspaces."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError, Refused
from fleet.domain.run import workspace_of
from fleet.domain.task import ENDED
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fleet.adapters.git.checkout import GitCheckout
    from fleet.adapters.git.diff.span import DiffSpan
    from fleet.adapters.git.kept.refs import KeptRef
    from fleet.adapters.git.kept.restore import Restored
    from fleet.adapters.git.landing.merge_and_push import Merged, Pushed
    from fleet.adapters.git.old_branches import DeleteBranches
    from fleet.adapters.git.remove import RemovedWorktree
    from fleet.adapters.git.repo import Repo
    from fleet.app.app import App
    from fleet.app.workspaces.repair import Repairs
    from fleet.domain.run import Checkpoint, Run, Workspace
    from fleet.domain.task import Task

MAX_TASKS = 10_000  # newest tasks to check; older ones only if a worktree or branch is left
TASK = r"^t-[0-9]{1,18}(?=-|$)"  # in the name of a worktree or of a branch
BATCH = 50  # tasks whose worktrees go side by side, and whose branches go together
SECOND = 1_000_000
DAY = 86_400 * SECOND


@dataclass(frozen=True, slots=True)
class Cleared:
    """What was removed of a task's workspaces here, until an error stopped it."""

    task: str
    paths: tuple[str, ...] = ()  # worktrees that were removed or returned to the pool
    kept: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()  # branches that were deleted
    said: tuple[str, ...] = ()
    error: FleetError | OSError | None = None


@dataclass(frozen=True, slots=True)
class KeptWork:
    """Work of a task that was saved before a removal; `id` names it in commands."""

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
    """A worktree or branch of Fleet's that no run owns. It is listed, never removed."""

    what: str  # `directory` or `branch`
    name: str
    project: str = ""


@dataclass(frozen=True, slots=True)
class Tidied:
    cleared: tuple[Cleared, ...]
    orphans: tuple[Orphan, ...]
    dry_run: bool
    pooled: tuple[str, ...] = ()  # surplus worktrees of the pool
    younger: int = 0  # worktrees that stay because their tasks ended too recently
    transcripts: tuple[str, ...] = ()  # the runs whose transcripts were removed
    forgotten: tuple[str, ...] = ()  # tasks that were removed from the store
    events: int = 0  # how far the log of events was shortened
    kept: tuple[str, ...] = ()  # kept work that was dropped


class Workspaces:
    def __init__(self, app: App) -> None:
        self._app = app

    def repairs(self) -> Repairs:
        from fleet.app.workspaces.repair import Repairs

        return Repairs(self._app)

    def of(self, task: Task) -> Workspace:
        """Return the task's newest workspace on this host, or raise where it is instead."""
        workspace = workspace_of(self._runs(task))
        if workspace is None:
            from fleet.operations.shared.elsewhere import must_be_here

            for run in reversed(self._app.store.runs(task.id)):
                if run.workspace is not None:
                    if self._app.shared and (brought := self._brought(task, run)):
                        return brought
                    what, command = "its worktree is", f"fleet diff {task.id}"
                    must_be_here(self._app.context, run, what, command)
            self._must_have_begun(task)
            raise Refused(
                f"{task.id} has no workspace here.",
                fix=f"`fleet show {task.id}` says where it ran.",
                code="no_workspace",
            )
        return workspace

    def _brought(self, task: Task, run: Run) -> Workspace | None:
        """Fetch an ended run's commits from the store to the task's branch here.

        None when the store does not have them, they are not all of its work, or a different branch
        has that name here.
        """
        from fleet.adapters.git.repo import Repo
        from fleet.supervisor.share_commits import pieces_of

        workspace, commit = run.workspace, _left_by(task.tally.checkpoint)
        if run.live or workspace is None or not workspace.branch or not commit:
            return None
        if task.tally.checkpoint and task.tally.checkpoint.uncommitted:
            return None
        with suppress(FleetError, OSError):
            checkout, repo = self._app.checkout(task.project), Repo.of(Path(_project(task)))
            if checkout.missing(task, [commit]):
                checkout.bring(task, pieces_of(self._app.store, [commit]), [commit])
            branch = workspace.branch
            if not repo.has_branch(branch) and repo.has_commit(commit):
                repo.git("branch", "--no-track", branch, commit)
            if repo.is_ancestor(commit, f"refs/heads/{branch}"):
                own = str(repo.common)
                return replace(workspace, root="", path=str(repo.top), made=False, repository=own)
        return None

    def _must_have_begun(self, task: Task) -> None:
        if not any(run.started_at for run in self._app.store.runs(task.id)):
            raise Refused(
                f"{task.id} has not begun yet, so it has changed nothing.",
                fix=f"`fleet show {task.id}` says why.",
                code="not_begun",
            )

    def span(self, task: Task, *, against: str = "", number: int = 0) -> DiffSpan:
        """Return the span from the start of the task, or of run `number`, to its current work."""
        from fleet.adapters.git.diff.span import WantedDiff, span
        from fleet.supervisor.attempt.site import merges_of

        runs = [run for run in self._runs(task) if not number or run.number <= number]
        workspace = workspace_of(runs) if number else self.of(task)
        newest = not number or number == task.tally.runs
        last = next((run for run in reversed(runs) if run.number == number), None)
        tip = _left_by(task.tally.checkpoint) if newest else _left_by_run(last)
        if workspace is None or (not newest and not tip):
            raise Refused(f"{task.id}.{number} left no commit here.", code="no_commit")
        earlier = filter(None, (_left_by_run(r) for r in reversed(runs) if r.number < number))
        if not tip and not os.path.isdir(workspace.root):  # noqa: PTH112  # it may be empty
            self._must_have_begun(task)
        settings = self._app.worlds(task.project).settings.workspace
        wanted = WantedDiff(
            task.id, tip, newest, next(earlier, ""),
            merges_of(self._app.store, task.after, task.project),
            against, settings.credential_files,
        )  # fmt: skip
        return span(workspace, _project(task), wanted)

    def diff_command(self, task: Task, *how: str, against: str = "", number: int = 0) -> list[str]:
        """Return the git command that shows the diff by the user's settings; empty: no changes."""
        from fleet.adapters.git.diff.read import is_empty

        span = self.span(task, against=against, number=number)
        argv = ["git", "-C", str(span.directory), "diff", *how, span.start, span.end, "--"]
        return [] if is_empty(span) else argv

    def diff_text(self, task: Task, *how: str, against: str = "", number: int = 0) -> str:
        """Return the diff as git writes it for programs."""
        from fleet.adapters.git.diff.read import text

        return text(self.span(task, against=against, number=number), *how)

    def merge(
        self, task: Task, onto: str, check: Callable[[Task, str, str], None] | None = None
    ) -> Merged:
        """Merge the task's work; `check` is called with the resulting tree, and may refuse it."""
        from fleet.adapters.git.landing.merge_and_push import merge

        def check_tree(tree: str, target: str) -> None:
            if check is not None:
                check(task, tree, target)

        tip = task.tally.checkpoint.commit if task.tally.checkpoint else ""
        return merge(self.of(task), _project(task), onto, tip=tip, check=check_tree)

    def push(self, task: Task) -> Pushed:
        from fleet.adapters.git.landing.merge_and_push import push

        return push(self.of(task), _project(task))

    def repo(self) -> Repo:
        from fleet.adapters.git.repo import Repo

        return Repo.of(self._app.cwd)

    def kept(self) -> list[KeptWork]:
        from fleet.adapters.git.kept.refs import list_kept

        return [_row(kept) for kept in list_kept(self.repo())]

    def restore(self, name: str, *, branch: str, into: Path | None) -> Restored:
        from fleet.adapters.git.kept.refs import find_kept
        from fleet.adapters.git.kept.restore import restore

        repo = self.repo()
        return restore(repo, find_kept(repo, name), branch=branch, into=into)

    def drop(self, name: str) -> KeptWork:
        from fleet.adapters.git.kept.refs import drop, find_kept

        repo = self.repo()
        kept = find_kept(repo, name)
        drop(repo, kept)
        return _row(kept)

    def remove_all(self, tasks: Sequence[str], *, delete_branch: bool = False) -> list[Cleared]:
        """Remove all workspaces of these tasks on this host, in threads; no process uses them."""
        from fleet.adapters.git.old_branches import DeleteBranches

        which = DeleteBranches.SAVED if delete_branch else DeleteBranches.UNUSED
        rows = [self._app.store.task(task) for task in tasks]
        return [done for some in _batches(rows) for done in self._removal(some, which)()]

    def _removal(self, tasks: Sequence[Task], which: DeleteBranches) -> Callable[[], list[Cleared]]:
        """Return a function that removes workspaces without the store, so for any thread."""
        workspaces = {task.id: self._made(task) for task in tasks}
        by_project: dict[str, list[Task]] = {}
        for task in tasks:
            by_project.setdefault(task.project, []).append(task)
        acts: list[Callable[[], list[Cleared]]] = []
        for project, some in by_project.items():
            try:
                checkout = self._app.checkout(project)
            except (FleetError, OSError) as error:
                acts.append(partial(_all_failed, some, error))
            else:
                acts.append(partial(_remove, checkout, some, workspaces, which))

        def act() -> list[Cleared]:
            cleared = {done.task: done for act in acts for done in act()}
            return [cleared[task.id] for task in tasks]

        return act

    def tidy(
        self, *, days: float, dry_run: bool, note: Callable[[int, int], None] | None = None
    ) -> Tidied:
        """Finish interrupted removals, remove ended tasks' worktrees, trim pools, list orphans.

        `note` is called with the number of tasks whose worktrees are removed, and of all of them.
        """
        tasks = self._tasks()
        before = self._app.store.now() - int(days * DAY)
        workspaces = self._made_by(tasks)
        left = {task.id: _left(task, workspaces[task.id], before) for task in tasks}
        removable = [task for task in tasks if left[task.id]]
        if dry_run:
            cleared = [Cleared(task.id, left[task.id]) for task in removable]
        else:
            cleared = self._clear(removable, note or _no_note)
        young = [task for task in tasks if not left[task.id] and task.state in ENDED]
        younger = sum(os.path.lexists(w.root) for task in young for w in workspaces[task.id])
        pooled = dict.fromkeys(self._trim_pools(tasks, before / SECOND, dry_run=dry_run))
        owned = [workspace for each in workspaces.values() for workspace in each]
        orphans = dict.fromkeys(self._orphans(tasks, owned))  # projects may share a place
        return Tidied(tuple(cleared), tuple(orphans), dry_run, tuple(pooled), younger)

    def _trim_pools(self, tasks: list[Task], before: float, *, dry_run: bool) -> Iterator[str]:
        for project in filter(None, self._projects(tasks)):
            with suppress(FleetError, OSError):
                checkout = self._app.checkout(project)
                yield from map(str, checkout.trim_pool(Path(project), before, dry_run=dry_run))

    def _projects(self, tasks: list[Task]) -> list[str]:
        from fleet.config import checkout_top

        current = str(self._app.loaded.project or checkout_top(self._app.cwd) or "")
        return sorted({t.project for t in tasks} | {"", current})

    def _tasks(self) -> list[Task]:
        """Return the newest tasks, and older ones that have a worktree or a branch here."""
        store = self._app.store
        newest = store.tasks(TaskQuery(limit=MAX_TASKS))
        if len(newest) < MAX_TASKS:
            return newest
        known, older = {task.id for task in newest}, set[str]()
        for project in self._projects(newest):
            with suppress(FleetError, OSError):
                settings = self._app.worlds(project).settings.workspace
                left = (
                    *_directories(Path(settings.root), set()),
                    *_branches(project, settings.branch_prefix, set()),
                )
                older |= {i for orphan in left for i in re.findall(TASK, Path(orphan.name).name)}
        return [*newest, *store.tasks_by_id(sorted(older - known)).values()]

    def _clear(self, tasks: Sequence[Task], note: Callable[[int, int], None]) -> list[Cleared]:
        cleared = list[Cleared]()
        note(0, len(tasks))
        for some in _batches(tasks):
            cleared += map(_with_the_error, self.clearing(some)())
            note(len(cleared), len(tasks))
        return cleared

    def clearing(self, tasks: Sequence[Task]) -> Callable[[], list[Cleared]]:
        """Return a function that removes their worktrees and merged branches.

        The function does not use the store, so any thread may call it.
        """
        from fleet.adapters.git.old_branches import DeleteBranches

        return self._removal(tasks, DeleteBranches.MERGED)

    def has_worktree(self, task: Task) -> bool:
        """Whether a worktree that Fleet made for it is on this host, or half removed."""
        roots = [w.root for w in self._made(task)]
        return any(os.path.lexists(path) for root in roots for path in (root, f"{root}.removing"))

    def _orphans(self, tasks: list[Task], owned: list[Workspace]) -> Iterator[Orphan]:
        from fleet.supervisor.ahead import read_ahead

        known = owned + [row.workspace for row in read_ahead(self._app.home.ahead).values()]
        roots = {w.root for w in known}
        for project in self._projects(tasks):
            with suppress(FleetError, OSError):
                settings = self._app.worlds(project).settings.workspace
                yield from _directories(Path(settings.root), roots)
                yield from _branches(project, settings.branch_prefix, {w.branch for w in known})

    def _made(self, task: Task) -> list[Workspace]:
        return _made_in(self._runs(task))

    def _made_by(self, tasks: Sequence[Task]) -> dict[str, list[Workspace]]:
        """Return what `_made` does for each of many tasks, with one query."""
        host = self._app.home.host_id()
        names = {t.id: [f"{t.id}.{n}" for n in range(1, t.tally.runs + 1)] for t in tasks}
        runs = self._app.store.runs_by_id([name for each in names.values() for name in each])
        return {
            task: _made_in([runs[n] for n in each if n in runs and runs[n].host == host])
            for task, each in names.items()
        }

    def _runs(self, task: Task) -> list[Run]:
        host = self._app.home.host_id()
        return [run for run in self._app.store.runs(task.id) if run.host == host]


def _made_in(runs: Sequence[Run]) -> list[Workspace]:
    workspaces = {run.workspace.root: run.workspace for run in runs if run.workspace}
    return [workspace for workspace in workspaces.values() if workspace.made]


def _left(task: Task, made: Sequence[Workspace], before: int) -> tuple[str, ...]:
    """Return the directories to remove: all if the task ended long ago, else half-removed ones."""
    roots = [w.root for w in made]
    begun = tuple(root for root in roots if Path(f"{root}.removing").exists())
    if task.state in ENDED and task.tally.ended_at <= before:
        return tuple(root for root in roots if os.path.lexists(root) or root in begun)
    return begun


def _remove(
    checkout: GitCheckout,
    tasks: Sequence[Task],
    made: Mapping[str, Sequence[Workspace]],
    which: DeleteBranches,
) -> list[Cleared]:
    from fleet.adapters.git.remove_all import OldWorkspace

    old = [OldWorkspace(w, task.id, _project(task)) for task in tasks for w in made[task.id]]
    cleared = {task.id: Cleared(task.id) for task in tasks}
    for one, done in zip(old, checkout.remove_all(old, which), strict=True):
        cleared[one.task] = _with(cleared[one.task], done)
    return list(cleared.values())


def _with(cleared: Cleared, done: RemovedWorktree | FleetError | OSError) -> Cleared:
    if isinstance(done, Refused) and done.code == "not_ours":  # a person moved it
        return replace(cleared, said=(*cleared.said, str(done)))
    if isinstance(done, Exception):
        return replace(cleared, error=cleared.error or done)
    removed = (done.root,) if done.removed or done.parked else ()
    branch = (done.branch,) if done.branch_deleted else ()
    return replace(
        cleared,
        paths=cleared.paths + removed,
        kept=cleared.kept + done.kept,
        branches=cleared.branches + branch,
        said=cleared.said + done.said,
    )


def _all_failed(tasks: Sequence[Task], error: FleetError | OSError) -> list[Cleared]:
    return [Cleared(task.id, error=error) for task in tasks]


def _with_the_error(cleared: Cleared) -> Cleared:
    if cleared.error is None:
        return cleared
    return replace(cleared, said=(*cleared.said, str(cleared.error)), error=None)


def _batches(tasks: Sequence[Task]) -> Iterator[Sequence[Task]]:
    return (tasks[start : start + BATCH] for start in range(0, len(tasks), BATCH))


def _no_note(_done: int, _of: int) -> None:
    pass


def _row(kept: KeptRef) -> KeptWork:
    snapshot = kept.snapshot
    return KeptWork(
        kept.id, kept.ref, kept.task, kept.at * 1_000_000, snapshot.branch, snapshot.base,
        snapshot.head, kept.commit, snapshot.uncommitted, snapshot.notes,
    )  # fmt: skip


def _left_by_run(run: Run | None) -> str:
    return _left_by(run.outcome.checkpoint) if run and run.outcome else ""


def _left_by(checkpoint: Checkpoint | None) -> str:
    return checkpoint.commit if checkpoint else ""


def _project(task: Task) -> str:
    return task.spec.cwd or task.project


def _directories(worktrees: Path, owned: set[str]) -> Iterator[Orphan]:
    from fleet.adapters.git.set_up.cache import SET_UPS

    if not worktrees.is_dir():
        return
    folders = (p for p in worktrees.iterdir() if p.is_dir() and not p.is_symlink())
    for folder in sorted(p for p in folders if p.name != SET_UPS):
        homes = sorted(folder.iterdir()) if folder.name == "pool" else [folder]
        for home in homes:
            listed = (p for p in home.iterdir() if p.is_dir() and p.name[0] != ".")
            for path in sorted(listed):  # a dot: a temporary folder of Fleet's own git
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
