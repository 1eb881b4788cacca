"""Workspaces as git worktrees: one branch and one directory per task."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.host import process
from fleet.domain.errors import FleetError, Refused, Unavailable
from fleet.domain.run import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.ports import Merge, Site

DEADLINE = 120.0  # a checkout of a large repository on a slow disk; nothing else comes near it
STALE = 1.0  # seconds after which a lock in a workspace that no process of ours uses is nobody's
QUIET = ("-c", "gc.auto=0", "-c", "maintenance.auto=false")  # no packing while others work


@dataclass(frozen=True, slots=True)
class WorkspaceRules:
    """What the settings say about workspaces of one project."""

    root: str = ""  # empty: `worktrees` in the home
    branch_prefix: str = "fleet/"
    credential_files: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    setup_timeout: float = 600.0


class GitCheckout:
    def __init__(self, worktrees: Path, rules: WorkspaceRules | None = None) -> None:
        self._rules = rules or WorkspaceRules()
        self._worktrees = Path(self._rules.root).expanduser() if self._rules.root else worktrees

    def plan(self, site: Site) -> Workspace:
        cwd = Path(site.task.spec.cwd or site.task.project)
        if not cwd.is_dir():
            raise Refused(f"{cwd} is not a directory.", fix="Was the project moved?")
        if site.task.spec.in_place:
            return Workspace(path=str(cwd))
        if site.previous is not None:
            return site.previous
        repo = Repo.of(cwd)
        branch = self._free_branch(repo, site)
        home = self._worktrees / f"{repo.top.name}-{_digest(str(repo.common))}"
        root = home / f"{site.task.id}-{_digest(branch)}"
        within = cwd.resolve().relative_to(repo.top)
        start = site.start if site.start and repo.has_commit(site.start) else ""
        base = repo.commit(start or site.task.spec.base or "HEAD")
        return Workspace(str(root / within), str(root), branch, base, made=True)

    def _free_branch(self, repo: Repo, site: Site) -> str:
        """A name that no branch has: another store may have numbered its tasks alike."""
        wanted = site.task.spec.branch or self._rules.branch_prefix + site.task.id
        if site.run.number > 1:
            wanted = f"{wanted}-a{site.run.number}"
        name, tries = wanted, 1
        while repo.has_branch(name):
            tries += 1
            name = f"{wanted}-{tries}"
        return name

    def prepare(self, workspace: Workspace, site: Site) -> None:
        if not workspace.made:
            return
        repo = Repo.of(Path(site.task.spec.cwd or site.task.project))
        making = Making(repo, workspace, fresh=site.previous is None)
        try:
            if making.begin():
                self._complete(repo, workspace, site, making)
        finally:
            making.close()
        _check_path(workspace)

    def _complete(self, repo: Repo, workspace: Workspace, site: Site, making: Making) -> None:
        try:
            for merge in site.merges if making.fresh else ():
                _merge(repo, Path(workspace.root), merge, site.task.id, making.mark)
            _check_path(workspace)
            self._furnish(repo, Path(workspace.root), making.mark)
        except (FleetError, OSError):
            making.undo()
            raise
        making.finish()

    def _furnish(self, repo: Repo, root: Path, mark: str) -> None:
        for name in self._rules.credential_files:
            source, target = repo.top / name, root / name
            if source.is_file() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        for command in self._rules.setup:
            _set_up(command, root, self._rules.setup_timeout, mark)

    def commit(self, workspace: Workspace) -> str:
        with suppress(Unavailable, OSError):
            done = _git(Path(workspace.path), "rev-parse", "--verify", "--quiet", "HEAD")
            return done.out.strip() if done.status == 0 else ""
        return ""  # its directory is gone


class Making:
    """A worktree while it is made. A file beside it says so, until it is whole.

    Only a worktree with that file is ever made again or removed here: nobody has worked in it.
    `fresh`: with a branch of its own; else it is for a branch that has been worked on.
    The file is locked: by us, and by a child that we forked until it is the program with our mark.
    """

    def __init__(self, repo: Repo, workspace: Workspace, *, fresh: bool) -> None:
        self._repo = repo
        self._workspace = workspace
        self._root = Path(workspace.root)
        self._begun = self._root.with_name(f"{self._root.name}.making")
        self._lock = -1
        self.fresh = fresh
        self.mark = hashlib.sha256(os.fsencode(self._root)).hexdigest()

    def begin(self) -> bool:
        """False when it is there already, whole."""
        branch = self._workspace.branch
        with self._repo.alone():
            crashed = self._begun.exists()
            if not crashed:
                if self._root.exists():
                    self._check_ours()
                    self._unlock()
                    return False
                if self.fresh and self._repo.has_branch(branch):
                    raise Refused(f"Somebody else has made the branch {branch} meanwhile.")
                self._root.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._take()
            if crashed or not self.fresh:
                self._clear()
            how = (
                [str(self._root), branch]
                if self._repo.has_branch(branch)
                else ["--no-track", "-b", branch, str(self._root), self._workspace.base]
            )
            self._repo.git("worktree", "add", "--quiet", *how, mark=self.mark)
        return True

    def _take(self) -> None:
        """Be the only one who makes it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._lock = os.open(self._begun, flags, 0o600)
        for _ in range(500):  # a child that is about to be git takes milliseconds at most
            with suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.01)
        raise Unavailable(f"Somebody else is making {self._root}.")

    def _check_ours(self) -> None:
        asked = _git(self._root, "rev-parse", "--path-format=absolute", "--git-common-dir")
        if asked.status or Path(asked.out.strip()).resolve() != self._repo.common:
            raise Refused(
                f"{self._root} is not a worktree of {self._repo.top} any more.",
                fix=f"git -C {self._repo.top} worktree repair {self._root}, or move it away.",
            )

    def _unlock(self) -> None:
        """Remove the locks of a git that was killed with the run before: they would stay for ever."""
        names = ("index.lock", "HEAD.lock", f"refs/heads/{self._workspace.branch}.lock")
        for name in names:
            found = _git(self._root, "rev-parse", "--path-format=absolute", "--git-path", name)
            with suppress(FileNotFoundError):
                lock = Path(found.out.strip())
                if time.time() - lock.stat().st_mtime > STALE:
                    lock.unlink()

    def _clear(self) -> None:
        """Remove what a crash left of an earlier try, and end what may still be at it."""
        if not process.end_marked(self.mark):
            raise Unavailable(f"An earlier set-up is still at work in {self._root}.")
        shutil.rmtree(self._root, ignore_errors=True)
        self._repo.git("worktree", "remove", "--force", "--force", str(self._root), check=False)
        if self.fresh:  # a git that was killed leaves its lock on the branch it was making
            lock = self._repo.common / "refs" / "heads" / f"{self._workspace.branch}.lock"
            lock.unlink(missing_ok=True)

    def undo(self) -> None:
        with suppress(FleetError, OSError), self._repo.alone():
            self._clear()
            if self.fresh:
                self._repo.git("branch", "-D", self._workspace.branch, check=False)
            self.finish()

    def finish(self) -> None:
        """Also after a power cut: what is done in it from now on is somebody's work."""
        self._begun.unlink()
        folder = os.open(self._begun.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
        self.close()

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@dataclass(frozen=True, slots=True)
class Repo:
    """`top` is the checkout that was asked from; `common` is what all its worktrees share."""

    top: Path
    common: Path

    @staticmethod
    def of(cwd: Path) -> Repo:
        asked = _git(
            cwd, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"
        )
        if asked.status:
            raise Refused(f"{cwd} is not in a git repository.", fix="git init, or use --in-place.")
        top, common = asked.out.splitlines()
        return Repo(Path(top).resolve(), Path(common).resolve())

    def git(self, *args: str, check: bool = True, mark: str = "") -> process.Done:
        done = _git(self.top, *args, mark=mark)
        if check and done.status:
            raise Refused(f"git {args[0]} {args[1]} failed: {done.words}")
        return done

    def has_branch(self, name: str) -> bool:
        ref = f"refs/heads/{name}"
        return self.git("show-ref", "--verify", "--quiet", ref, check=False).status == 0

    def has_commit(self, name: str) -> bool:
        return self.git("cat-file", "-e", f"{name}^{{commit}}", check=False).status == 0

    def commit(self, name: str) -> str:
        found = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False)
        if found.status:
            if name == "HEAD":
                raise Refused(f"{self.top} has no commit yet.", fix="git commit --allow-empty")
            raise Refused(f"There is no commit '{name}' in {self.top} to start from.")
        return found.out.strip()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nothing else of ours changes this repository's worktrees meanwhile."""
        with (self.common / "fleet.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _check_path(workspace: Workspace) -> None:
    if not Path(workspace.path).is_dir():
        raise Refused(f"{workspace.path} is not in {workspace.base[:12]}.")


def _merge(repo: Repo, root: Path, wanted: Merge, task: str, mark: str) -> None:
    """Bring in what a task waited for."""
    branch = wanted.branch
    what = branch if repo.has_branch(branch) else wanted.commit
    if not what:
        return
    words = ["--no-edit", "--ff", "--no-verify", "-m", f"Merge {branch} for {task}", what]
    done = _git(root, *_identity(root), *QUIET, "merge", *words, mark=mark)
    if done.status == 0:
        return
    listed = _git(root, "diff", "--name-only", "--diff-filter=U", "-z").out
    files = [name for name in listed.split("\0") if name]
    how = f"conflicts in {', '.join(files)}" if files else done.words
    raise Refused(
        f"{branch} cannot be merged into the workspace of {task}: {how}.",
        fix="Merge the branches by hand and give the result with --base.",
        code="base_conflict",
    )


def _set_up(command: str, root: Path, timeout: float, mark: str) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = process.run(["sh", "-c", command], root, env=env, timeout=timeout, mark=mark)
    except Unavailable as error:
        raise Refused(f"Set-up took more than {timeout:.0f} s: {command}") from error
    if done.status:
        raise Refused(f"Set-up failed ({done.status}): {command}: {done.words}")


def _git(cwd: Path, *args: str, mark: str = "") -> process.Done:
    return process.run(["git", *args], cwd, env=_env(), timeout=DEADLINE, mark=mark)


def _env() -> dict[str, str]:
    """Not that of a git hook which may have called us."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_KEPT)}
    return env | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


_KEPT = ("GIT_CONFIG", "GIT_AUTHOR", "GIT_COMMITTER", "GIT_SSH", "GIT_EXEC_PATH", "GIT_LFS_")


def _identity(root: Path) -> list[str]:
    """Somebody to commit merges as, where the user has named nobody."""
    known = _git(root, "var", "GIT_COMMITTER_IDENT").status == 0
    return [] if known else ["-c", "user.name=fleet", "-c", "user.email=fleet@localhost"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]
