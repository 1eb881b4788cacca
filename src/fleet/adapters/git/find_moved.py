"""Find a worktree that was moved from where fleet made it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import Repo, run_git, text_of
from fleet.base import machine
from fleet.domain.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.domain.run import Workspace


def find_worktree(workspace: Workspace, project: str, mark: str) -> Path | None:
    """Find a moved worktree by git's record, else by the directories of the programs with this mark.

    Repairs git's record of it.
    """
    with suppress(FleetError, OSError):
        repo = Repo.of(Path(project))
        for root in (*_recorded(repo, workspace.branch), *_of_programs(mark)):
            if _has_checked_out(repo, root, workspace.branch):
                repo.git("worktree", "repair", str(root), check=False)
                return root
    return None


def _recorded(repo: Repo, branch: str) -> Iterator[Path]:
    listed = text_of(repo.git("worktree", "list", "--porcelain", "-z").raw)
    for block in listed.split("\0\0"):
        lines = block.split("\0")
        if f"branch refs/heads/{branch}" in lines:
            root = Path(lines[0].removeprefix("worktree "))
            if root.is_dir():
                yield root


def _of_programs(mark: str) -> Iterator[Path]:
    for pid in sorted(machine.marked(mark)) if mark else ():
        with suppress(OSError):
            cwd = Path(f"/proc/{pid}/cwd").readlink()
            top = run_git(cwd, "rev-parse", "--show-toplevel")
            if top.status == 0:
                yield Path(text_of(top.raw).removesuffix("\n"))


def _has_checked_out(repo: Repo, root: Path, branch: str) -> bool:
    """A worktree of this repository, but not its main one, with this branch checked out."""
    if root.resolve() == repo.top or not (root / ".git").is_file():
        return False
    words = ("rev-parse", "--path-format=absolute", "--git-common-dir", "--symbolic-full-name")
    lines = text_of(run_git(root, *words, "HEAD").raw).split("\n")
    return Path(lines[0]).resolve() == repo.common and lines[1] == f"refs/heads/{branch}"
