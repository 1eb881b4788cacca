"""Make a worktree: from the pool, or with git."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git import refs as git_refs
from fleet.adapters.git.repo import NO_HOOKS, run_git, unlock
from fleet.adapters.machine.digest import digest_of
from fleet.adapters.processes import run as process
from fleet.domain.errors import FleetError, Refused, Unavailable

if TYPE_CHECKING:
    from fleet.adapters.git.pool import Pool
    from fleet.adapters.git.repo import Repo
    from fleet.domain.run import Workspace

MANY = 50  # worktrees of a repository; git reads four files of each
NOTHING = "0" * 40  # the previous commit of a new worktree, as git gives it to the hook


def mark_of(root: Path) -> str:
    """What the programs carry in their environment that make the worktree of this path."""
    return digest_of(os.fsencode(root))


def _has_many(repo: Repo) -> bool:
    """Whether git takes longer to look at all worktrees than to make one, and has no special ones."""
    try:
        records = sum(1 for _ in (repo.common / "worktrees").iterdir())
        config = (repo.common / "config").read_bytes().lower()
    except OSError:
        return False
    plain = git_refs.in_files(repo.common) and b"worktreeconfig" not in config
    return records >= MANY and plain


class Making:
    """A file beside the worktree says that it is being made, until it is whole.

    Only a worktree with that file is made again or removed here: no agent has worked in it.
    `fresh`: with a new branch; else for a branch that has work on it.
    The file is locked by this process, and by a forked child until it executes the marked program.
    """

    def __init__(
        self,
        repo: Repo,
        workspace: Workspace,
        *,
        fresh: bool,
        pool: Pool | None = None,
        hooks: bool = True,
    ) -> None:
        self._repo = repo
        self._workspace = workspace
        self._root = Path(workspace.root)
        self._begun = self._root.with_name(f"{self._root.name}.making")
        self._lock = -1
        self._pool = pool
        self._hooks = hooks
        self.fresh = fresh
        self.pooled = False  # it was used before, so files that git ignores may be there
        self.mark = mark_of(self._root)

    def begin(self) -> bool:
        """False when the worktree exists already and is complete.

        The files are written after the repository's lock is released: several worktrees at once.
        """
        branch = self._workspace.branch
        with self._repo.alone():
            crashed = self._begun.exists()
            if not crashed:
                if self._root.exists():
                    self._check_ours()
                    self._unlock()
                    return False
                if self._root.with_name(f"{self._root.name}.removing").exists():
                    raise Unavailable(
                        f"{self._root} is being removed.", fix="fleet gc", code="being_removed"
                    )
                if self.fresh and self._repo.has_branch(branch):
                    raise Refused(
                        f"Another process created the branch {branch} in the meantime.",
                        code="branch_taken",
                    )
                self._root.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._take()
            if crashed or not self.fresh:
                self._clear()
            self._make(branch_exists=(crashed or not self.fresh) and self._repo.has_branch(branch))
        if not self.pooled:
            self._fill()
        return True

    def _make(self, *, branch_exists: bool) -> None:
        """`branch_exists`: check that branch out instead of creating it."""
        workspace = self._workspace
        if self._pool and not branch_exists:
            self.pooled = self._pool.take(self._root, workspace.branch, workspace.base, self.mark)
            if self.pooled:
                return
        if not branch_exists and _has_many(self._repo):
            self._record()
            return
        arguments = (
            [str(self._root), workspace.branch]
            if branch_exists
            else ["--no-track", "-b", workspace.branch, str(self._root), workspace.base]
        )
        self._repo.git("worktree", "add", "--quiet", "--no-checkout", *arguments, mark=self.mark)

    def _record(self) -> None:
        """Write what `git worktree add -b` writes, which first looks at all other worktrees, twice.

        `locked` keeps git from pruning it until it is whole.
        """
        gitdir = self._repo.common / "worktrees" / self._root.name
        number = 0
        while gitdir.exists():
            number += 1
            gitdir = gitdir.with_name(f"{self._root.name}{number}")
        gitdir.mkdir()
        (gitdir / "locked").write_text("initializing\n")
        (gitdir / "gitdir").write_bytes(os.fsencode(f"{self._root}/.git\n"))
        (gitdir / "commondir").write_text("../..\n")
        (gitdir / "HEAD").write_text(f"ref: refs/heads/{self._workspace.branch}\n", "utf-8")
        self._root.mkdir(exist_ok=True)
        (self._root / ".git").write_bytes(os.fsencode(f"gitdir: {gitdir}\n"))
        ref = f"refs/heads/{self._workspace.branch}"
        self._repo.git(
            "update-ref", "--create-reflog", ref, self._workspace.base, "", mark=self.mark
        )
        (gitdir / "locked").unlink()

    def _fill(self) -> None:
        """Write the files as `git worktree add` does."""
        how = () if self._hooks else NO_HOOKS
        done = run_git(
            self._root, *how, "reset", "--hard", "--no-recurse-submodules", mark=self.mark
        )
        if done.status:
            raise Refused(f"git reset failed in {self._root}: {done.words}")
        if self._hooks and self._repo.has_hook("post-checkout"):
            words = ("hook", "run", "--ignore-missing", "post-checkout", "--", NOTHING)
            run_git(self._root, *words, self._workspace.base, "1", mark=self.mark)

    def _take(self) -> None:
        """Lock the file, so that no other process makes the same worktree."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._lock = os.open(self._begun, flags, 0o600)
        for _ in range(
            500
        ):  # a forked child holds the lock for milliseconds, until it executes git
            with suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.01)
        raise Unavailable(f"Another fleet process is making {self._root}.")

    def _check_ours(self) -> None:
        done = run_git(self._root, "rev-parse", "--path-format=absolute", "--git-common-dir")
        if done.status or Path(done.out.strip()).resolve() != self._repo.common:
            raise Refused(
                f"{self._root} is not a worktree of {self._repo.top} any more.",
                fix=f"git -C {self._repo.top} worktree repair {self._root}, or move it away.",
            )

    def _unlock(self) -> None:
        """Remove the locks of a git that was killed with the previous run: nothing else would."""
        names = ("index.lock", "HEAD.lock", f"refs/heads/{self._workspace.branch}.lock")
        for name in names:
            done = run_git(self._root, "rev-parse", "--path-format=absolute", "--git-path", name)
            unlock(Path(done.out.strip()))

    def _clear(self) -> None:
        """End the processes of an earlier try that crashed, and remove what it made."""
        if not process.end_marked(self.mark):
            raise Unavailable(f"An earlier set-up is still running in {self._root}.")
        import shutil  # noqa: PLC0415  # start-up time

        shutil.rmtree(self._root, ignore_errors=True)
        self._repo.git("worktree", "remove", "--force", "--force", str(self._root), check=False)
        if self.fresh:  # a git that was killed leaves its lock on the branch it was making
            lock = self._repo.common / "refs" / "heads" / f"{self._workspace.branch}.lock"
            lock.unlink(missing_ok=True)

    def take_over(self) -> bool:
        """False when nobody has begun it, or it is whole. Else it is ours, to undo."""
        if not self._begun.exists():
            return False
        self._take()
        return True

    def undo(self) -> None:
        """Remove what this object made; what existed before, or is another process's, stays."""
        if self._lock < 0:
            return
        with suppress(FleetError, OSError), self._repo.alone():
            self._clear()
            if self.fresh:
                self._repo.git("branch", "-D", self._workspace.branch, check=False)
            self.finish()

    def finish(self) -> None:
        """The worktree is complete, also after a power cut: from now on it may hold work."""
        self._begun.unlink()
        folder = os.open(self._begun.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
        self.close()

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
