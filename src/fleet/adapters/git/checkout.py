"""Workspaces as git worktrees: one branch and one directory per task."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.make import Making, mark_of
from fleet.adapters.git.pool import Pool
from fleet.adapters.git.repo import NO_HOOKS, QUIET, Repo, digest, identity, names_of, run_git
from fleet.adapters.git.set_up.cache import SET_UPS, SetUps
from fleet.adapters.git.set_up.port_blocks import Ports
from fleet.adapters.git.set_up.steps import Commands, bring_files, workspace_env
from fleet.adapters.git.set_up.virtual_environments import relocate_all
from fleet.adapters.processes import run as process
from fleet.base import set_up_file
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, FleetError, Refused, Unavailable
from fleet.domain.run import Workspace
from fleet.domain.task import other_base
from fleet.ports import Tip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.adapters.git.old_branches import DeleteBranches
    from fleet.adapters.git.remove import RemovedWorktree
    from fleet.adapters.git.remove_all import OldWorkspace
    from fleet.domain.hosts.piece import Piece
    from fleet.domain.task import Task
    from fleet.ports import Merge, Site


@dataclass(frozen=True, slots=True)
class WorkspaceRules:
    """What the settings say about workspaces of one project."""

    root: str = ""  # empty: `worktrees` in the home
    branch_prefix: str = "fleet/"
    branch_pattern: str = ""  # the name of a new branch must match it as a whole
    credential_files: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    setup_timeout: float = 600.0
    setup_cache: tuple[str, ...] = ()
    teardown: tuple[str, ...] = ()
    ports: int = 0
    pool: int = 0
    pool_ignored: str = "keep"
    hooks: bool = (
        True  # git's: they run files of the worktree, and so an agent's, outside of its isolation
    )


class GitCheckout:
    """`ports` is the file that records ports; `log(task)` is the log of the task's set-up."""

    def __init__(
        self,
        worktrees: Path,
        rules: WorkspaceRules | None = None,
        *,
        ports: Path | None = None,
        log: Callable[[str], Path] | None = None,
    ) -> None:
        self.rules = rules or WorkspaceRules()
        self._worktrees = Path(self.rules.root).expanduser() if self.rules.root else worktrees
        self._folders = (self._worktrees, worktrees)
        self._ports = ports
        self._log = log

    def plan(self, site: Site) -> Workspace:
        cwd = Path(site.task.spec.cwd or site.task.project)
        if not cwd.is_dir():
            raise Refused(
                f"{cwd} is not a directory.", fix="Was the project moved?", code="no_directory"
            )
        if site.task.spec.in_place:
            return Workspace(path=str(cwd))
        if site.previous is not None:
            return site.previous
        repo = Repo.of(cwd)
        branch = self._free_branch(repo, site)
        home = self._worktrees / f"{repo.top.name[:100]}-{digest(str(repo.common))}"
        root = home / f"{site.task.id}-{digest(branch)}"
        within = "" if repo.top == repo.common else _within(cwd.resolve(), repo.top)
        start = site.start if site.start and repo.has_commit(site.start) else ""
        base = repo.commit(start or site.task.spec.base or "HEAD")
        return Workspace(
            str(root / within), str(root), branch, base, made=True,
            repository=str(repo.common), onto=repo.starting_branch(site.task.spec.base),
        )  # fmt: skip

    def _free_branch(self, repo: Repo, site: Site) -> str:
        """A name that no branch has: another store may have used the same task ids."""
        branch = site.task.spec.branch or self.rules.branch_prefix + site.task.id
        taken = self.check_branch(repo, branch)
        if taken and site.run.number > 1:  # an earlier run may still work on it
            branch = f"{branch}-a{site.run.number}"
            taken = repo.has_branch(branch)
        name, tries = branch, 1
        while taken:
            tries += 1
            name = f"{branch}-{tries}"
            taken = repo.has_branch(name)
        return name

    def check_branch(self, repo: Repo, name: str) -> bool:
        """Raise when a task may not have this branch; True: the branch exists."""
        pattern = self.rules.branch_pattern
        if pattern and not re.fullmatch(pattern, name):
            raise BadInput(
                f"The branch '{name[:80]}' does not match workspace.branch_pattern ({pattern}).",
                fix="Choose a name that does.",
                code="branch_pattern",
            )
        return repo.check_name(name)

    def check_merges(self, repo: Repo, base: str, merges: Sequence[Merge] = ()) -> None:
        """Raise when no workspace can start from this commit with these branches merged."""
        start = repo.commit(base or "HEAD")
        for merge in merges:
            from fleet.adapters.git.landing.merge_and_push import commit_of, merged_tree  # noqa: PLC0415  # few need it

            branch, source = merge.branch, _source(repo, merge)
            if not source:
                continue
            tip = repo.commit(source)
            tree, files = merged_tree(repo, start, tip)
            if files:
                raise base_conflict(branch, files)
            start = commit_of(repo, tree, start, tip, f"Merge {branch}")

    def prepare(self, workspace: Workspace, site: Site) -> None:
        if not workspace.made:
            return
        repo = Repo.of(Path(site.task.spec.cwd or site.task.project))
        fresh, pool = site.previous is None, self._pool(repo)
        making = Making(repo, workspace, fresh=fresh, pool=pool, hooks=self.rules.hooks)
        try:
            if making.begin():
                self._complete(repo, workspace, site, making)
        except (FleetError, OSError):
            making.undo()
            raise
        finally:
            making.close()
        _check_path(workspace)

    def interrupt(self, workspace: Workspace, site: Site) -> None:
        folder = self._log(site.task.id).parent if self._log else None
        if folder is None or not set_up_file.running(folder):
            return  # git is at work, which ends soon
        set_up_file.end(folder)
        process.end_marked(mark_of(Path(workspace.root)))

    def discard(self, workspace: Workspace, *, task: str, project: str) -> None:
        repo = Repo.of(Path(project))
        making = Making(repo, workspace, fresh=True)
        if making.take_over():
            making.undo()
            making.close()
        elif Path(workspace.root).exists():
            self.remove(workspace, task=task, project=project, delete_branch=True)

    def _complete(self, repo: Repo, workspace: Workspace, site: Site, making: Making) -> None:
        for merge in site.merges if making.fresh else ():
            self._merge(repo, Path(workspace.root), merge, making.mark, site.task.id)
        _check_path(workspace)
        self._furnish(repo, workspace, site, making)
        making.finish()

    def _furnish(self, repo: Repo, workspace: Workspace, site: Site, making: Making) -> None:
        root = Path(workspace.root)
        bring_files(repo, root, self.rules.credential_files, replace=making.pooled)
        if making.pooled:
            relocate_all(root)
        if site.task.spec.quick or not self.rules.setup:
            return
        commands = self._commands(workspace, site.task.id, "Set-up", making.mark)
        self._set_ups(repo).run(commands, new=not making.pooled)

    def _commands(self, workspace: Workspace, task: str, title: str, mark: str = "") -> Commands:
        log = self._log(task) if self._log else None
        limit = self.rules.setup_timeout
        return Commands(Path(workspace.root), self.env(workspace), limit, log, mark, title)

    def env(self, workspace: Workspace) -> dict[str, str]:
        """The variables that fleet adds to the environment of its programs."""
        return workspace_env(workspace, self._ports, self.rules.ports)

    def commit(self, workspace: Workspace) -> str:
        with suppress(Unavailable, OSError):
            done = run_git(Path(workspace.path), "rev-parse", "--verify", "--quiet", "HEAD")
            return done.out.strip() if done.status == 0 else ""
        return ""  # its directory is gone

    def finish(self, workspace: Workspace, site: Site, *, gather: bool) -> Tip:
        from fleet.adapters.git.commit import finish  # noqa: PLC0415  # few commands commit
        from fleet.adapters.git.diff.size import WorkSpan, committed_lines  # noqa: PLC0415

        if not workspace.made:
            return Tip(self.commit(workspace))
        with suppress(Unavailable, OSError):
            message = f"{site.task.title}\n\nWhat {site.run.id} left uncommitted."
            private = self.rules.credential_files
            tip = finish(workspace, message if gather else "", private=private)
            work = WorkSpan(site.task.id, workspace, site.merges)
            return tip._replace(lines=committed_lines(work, tip.commit))
        return Tip()  # its directory is gone

    def pack(self, workspace: Workspace, commit: str) -> Sequence[Piece]:
        from fleet.adapters.git.pieces import pack  # noqa: PLC0415  # only where hosts share a store

        if not workspace.made or not commit:
            return ()
        return pack(Repo.of(Path(workspace.root)), commit, workspace.base)

    def missing(self, task: Task, commits: Sequence[str]) -> list[str]:
        from fleet.adapters.git.pieces import missing  # noqa: PLC0415  # as above

        return missing(Repo.of(Path(task.spec.cwd or task.project)), commits)

    def bring(self, task: Task, pieces: Sequence[Piece], wanted: Sequence[str]) -> list[str]:
        from fleet.adapters.git.pieces import bring  # noqa: PLC0415  # as above

        return bring(Repo.of(Path(task.spec.cwd or task.project)), pieces, wanted)

    def remove(
        self, workspace: Workspace, *, task: str, project: str = "", delete_branch: bool = False
    ) -> RemovedWorktree:
        """As `remove_all`, of one; `delete_branch`: also when its commits are only kept."""
        from fleet.adapters.git.old_branches import DeleteBranches  # noqa: PLC0415  # few commands remove
        from fleet.adapters.git.remove_all import OldWorkspace  # noqa: PLC0415  # as above

        which = DeleteBranches.SAVED if delete_branch else DeleteBranches.UNUSED
        (done,) = self.remove_all([OldWorkspace(workspace, task, project)], which)
        if isinstance(done, Exception):
            raise done
        return done

    def remove_all(
        self, old: Sequence[OldWorkspace], which: DeleteBranches
    ) -> list[RemovedWorktree | FleetError | OSError]:
        """Keep the work that is only there, then remove the worktrees or park them for the next starts.

        Their processes have ended. Called again after a crash, it continues where it was.
        """
        from fleet.adapters.git.remove import Removing  # noqa: PLC0415  # few commands remove
        from fleet.adapters.git.remove_all import Steps, remove_all  # noqa: PLC0415  # as above

        def removing(one: OldWorkspace) -> Removing:
            return Removing(one.workspace, one.task, self._folders)

        done = remove_all(old, Steps(removing, self._tear_down, self._pool), which)
        if self._ports is not None:
            for one, removed in zip(old, done, strict=True):
                if not isinstance(removed, Exception):
                    Ports(self._ports).release(one.workspace.root)
        return done

    def _tear_down(self, workspace: Workspace, task: str) -> list[str]:
        """The messages of commands that failed; the worktree is removed all the same."""
        begun = Path(f"{workspace.root}.removing")
        if not self.rules.teardown or not Path(workspace.root).is_dir() or begun.exists():
            return []
        messages = []
        commands = self._commands(workspace, task, "Tear-down")
        for command in self.rules.teardown:
            try:
                commands.one(command)
            except FleetError as error:
                messages.append(error.message)
        return messages

    def trim_pool(self, project: Path, before: float, *, dry_run: bool = False) -> list[Path]:
        """Remove pooled worktrees beyond `workspace.pool`, and those unused since `before` (seconds).

        Finished set-ups that were not used since then go, too.
        """
        repo = Repo.of(project)
        pooled = self._pool(repo).trim(before, dry_run=dry_run)
        return pooled + self._set_ups(repo).trim(before, dry_run=dry_run)

    def _set_ups(self, repo: Repo) -> SetUps:
        folder = self._worktrees / SET_UPS / digest(str(repo.common))
        return SetUps(folder, self.rules.setup, self.rules.setup_cache)

    def _pool(self, repo: Repo) -> Pool:
        folder = self._worktrees / "pool" / digest(str(repo.common))
        clean = self.rules.pool_ignored == "clean"
        return Pool(repo, folder, self.rules.pool, clean=clean, hooks=self.rules.hooks)

    def _merge(self, repo: Repo, root: Path, merge: Merge, mark: str, task: str) -> None:
        """Merge the branch of a task that this one waited for."""
        branch = merge.branch
        source = _source(repo, merge)
        if not source and not merge.commit:
            return  # a person closed that task, and it has no work
        if not source:
            raise Refused(
                f"The work of {branch}, which {task} starts from, is not in {repo.top}: it has no"
                f" commit {merge.commit[:12]}.",
                fix="Fetch it there, if it was made elsewhere. `fleet kept` lists what was saved"
                " here.",
                code="base_gone",
            )
        how = (*identity(root), *QUIET, *(() if self.rules.hooks else NO_HOOKS))
        words = ["--no-edit", "--ff", "--no-verify", "-m", f"Merge {branch} for {task}", source]
        done = run_git(root, *how, "merge", *words, mark=mark)
        if done.status == 0:
            return
        files = names_of(run_git(root, "diff", "--name-only", "--diff-filter=U", "-z").raw)
        if not files:
            raise Refused(f"{branch} cannot be merged into the workspace of {task}: {done.words}.")
        raise base_conflict(branch, files, task)


def _within(cwd: Path, top: Path) -> Path:
    if not cwd.is_relative_to(top):
        raise Refused(
            f"The files of {cwd} are elsewhere, in {top}: git's core.worktree says so.",
            fix="Name that directory, or: git config --unset core.worktree",
        )
    return cwd.relative_to(top)


def _check_path(workspace: Workspace) -> None:
    if not Path(workspace.path).is_dir():
        name = Path(workspace.path).relative_to(workspace.root)
        raise Refused(
            f"The directory {name} is not in {workspace.base[:12]}, which the task starts from.",
            fix="Commit a file in it first.",
            code="no_directory",
        )


def _source(repo: Repo, merge: Merge) -> str:
    """The branch, if it has the recorded work: a person may have added to it. Else the commit.

    A branch of that name may be another's, and an agent may have worked on a branch of its own. So
    where the recorded commit is not, a branch of that name proves nothing, and the result is empty.
    """
    ref = f"refs/heads/{merge.branch}"
    if not merge.commit:
        return ref if repo.has_branch(merge.branch) else ""
    if not repo.has_commit(merge.commit):
        return ""
    has = repo.has_branch(merge.branch) and repo.is_ancestor(merge.commit, ref)
    return ref if has else merge.commit


def base_conflict(branch: str, files: Sequence[str], task: str = "") -> Refused:
    """`task`: the one that needs the branch; empty before it is added."""
    names = f"{', '.join(files[:10])}{', …' if files[10:] else ''}"
    then = other_base(task) if task else "--base BRANCH"
    return Refused(
        f"{branch} conflicts with what {task or 'the task'} starts from, in {names}.",
        fix=f"Merge the branches by hand into one, and start from that: {then}",
        code="base_conflict",
    )
