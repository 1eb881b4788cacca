"""Workspaces as git worktrees: one branch and one directory per task."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import Refused, Unavailable
from fleet.domain.run import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.ports import Merge, Site

DEADLINE = 120.0  # a checkout of a large repository on a slow disk; nothing else comes near it


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
        fresh = self._make(repo, workspace)
        if site.previous is None:
            for merge in site.merges:
                _merge(repo, Path(workspace.root), merge, site.task.id)
        if not Path(workspace.path).is_dir():
            raise Refused(f"{workspace.path} is not in {workspace.base[:12]}.")
        if fresh:
            self._furnish(repo, Path(workspace.root))

    def _make(self, repo: Repo, workspace: Workspace) -> bool:
        """True when it was not there yet. Half a worktree, left by a crash, is made again."""
        root = Path(workspace.root)
        with repo.alone():
            if _is_worktree(root, workspace.branch):
                return False
            if root.exists():
                repo.git("worktree", "remove", "--force", "--force", str(root), check=False)
                shutil.rmtree(root, ignore_errors=True)
            repo.git("worktree", "prune")
            root.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            how = (
                [str(root), workspace.branch]
                if repo.has_branch(workspace.branch)
                else ["--no-track", "-b", workspace.branch, str(root), workspace.base]
            )
            repo.git("worktree", "add", "--quiet", *how)
        return True

    def _furnish(self, repo: Repo, root: Path) -> None:
        for name in self._rules.credential_files:
            source, target = repo.top / name, root / name
            if source.is_file() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        for command in self._rules.setup:
            _set_up(command, root, self._rules.setup_timeout)

    def commit(self, workspace: Workspace) -> str:
        done = _run(["git", "rev-parse", "--verify", "--quiet", "HEAD"], Path(workspace.path))
        return done.stdout.strip() if done.returncode == 0 else ""


@dataclass(frozen=True, slots=True)
class Repo:
    """`top` is the checkout that was asked from; `common` is what all its worktrees share."""

    top: Path
    common: Path

    @staticmethod
    def of(cwd: Path) -> Repo:
        asked = _run(
            ["git", "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"],
            cwd,
        )
        if asked.returncode:
            raise Refused(f"{cwd} is not in a git repository.", fix="git init, or use --in-place.")
        top, common = asked.stdout.splitlines()
        return Repo(Path(top).resolve(), Path(common).resolve())

    def git(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = _run(["git", *args], self.top)
        if check and done.returncode:
            raise Refused(f"git {args[0]} {args[1]} failed: {_words(done)}")
        return done

    def has_branch(self, name: str) -> bool:
        ref = f"refs/heads/{name}"
        return self.git("show-ref", "--verify", "--quiet", ref, check=False).returncode == 0

    def has_commit(self, name: str) -> bool:
        return self.git("cat-file", "-e", f"{name}^{{commit}}", check=False).returncode == 0

    def commit(self, name: str) -> str:
        found = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False)
        if found.returncode:
            if name == "HEAD":
                raise Refused(f"{self.top} has no commit yet.", fix="git commit --allow-empty")
            raise Refused(f"There is no commit '{name}' in {self.top} to start from.")
        return found.stdout.strip()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nothing else of ours changes this repository's worktrees meanwhile."""
        with (self.common / "fleet.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _is_worktree(root: Path, branch: str) -> bool:
    asked = _run(["git", "symbolic-ref", "--quiet", "HEAD"], root) if root.is_dir() else None
    if asked is None or asked.stdout.strip() != f"refs/heads/{branch}":
        return False
    lock = _run(["git", "rev-parse", "--path-format=absolute", "--git-path", "locked"], root)
    return not Path(lock.stdout.strip()).exists()  # git locks one that it is still making


def _merge(repo: Repo, root: Path, wanted: Merge, task: str) -> None:
    """Bring in what a task waited for. A conflict leaves the workspace as it was."""
    branch = wanted.branch
    what = branch if repo.has_branch(branch) else wanted.commit
    if not what:
        return
    merge = ["merge", "--no-edit", "-m", f"Merge {branch} for {task}", what]
    done = _run(["git", *_identity(root), *merge], root)
    if done.returncode == 0:
        return
    files = _run(["git", "diff", "--name-only", "--diff-filter=U"], root).stdout.split()
    _run(["git", "merge", "--abort"], root)
    how = f"conflicts in {', '.join(files)}" if files else _words(done)
    raise Refused(
        f"{branch} cannot be merged into the workspace of {task}: {how}.",
        fix="Merge the branches by hand and give the result with --base.",
        code="base_conflict",
    )


def _set_up(command: str, root: Path, timeout: float) -> None:
    try:
        done = _run(["sh", "-c", command], root, timeout=timeout)
    except Unavailable as error:
        raise Refused(f"Set-up took more than {timeout:.0f} s: {command}") from error
    if done.returncode:
        raise Refused(f"Set-up failed ({done.returncode}): {command}: {_words(done)}")


def _run(
    argv: list[str], cwd: Path, *, timeout: float = DEADLINE
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, cwd=cwd, env=_env(os.environ), capture_output=True, text=True,
            errors="replace", timeout=timeout, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{argv[0]} {argv[1]} took more than {timeout:.0f} s.") from error
    except FileNotFoundError as error:
        raise Unavailable(f"{error.filename} was not found.", fix="Install git.") from error


def _env(outer: Mapping[str, str]) -> dict[str, str]:
    """Not that of a git hook which may have called us."""
    env = {k: v for k, v in outer.items() if not k.startswith("GIT_") or k.startswith(_KEPT)}
    return env | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


_KEPT = ("GIT_CONFIG", "GIT_AUTHOR", "GIT_COMMITTER", "GIT_SSH")


def _identity(root: Path) -> list[str]:
    """Somebody to commit merges as, where the user has named nobody."""
    known = _run(["git", "var", "GIT_COMMITTER_IDENT"], root).returncode == 0
    return [] if known else ["-c", "user.name=fleet", "-c", "user.email=fleet@localhost"]


def _words(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stderr or done.stdout).split())[-300:] or f"status {done.returncode}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]
