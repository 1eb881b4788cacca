"""Workspaces: planned, made and committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.hosts.piece import Piece
    from fleet.domain.run import Run, Workspace
    from fleet.domain.task import Task


class Merge(NamedTuple):
    """Work to start from: a branch, or its commit when the branch is no more."""

    branch: str
    commit: str = ""


class Site(NamedTuple):
    """Where a run is to work, and what its workspace must contain."""

    task: Task
    run: Run
    merges: tuple[Merge, ...] = ()  # of the tasks it waited for, in order
    previous: Workspace | None = None  # of an earlier run whose processes are gone
    start: str = ""  # a commit to continue from, when there is no `previous`


class Tip(NamedTuple):
    """What a workspace is at when the work in it has ended.

    `left`: changed files that no commit has, and `why` they could not be committed.
    `gathered`: how many files are in the commit that fleet made of what was left.
    `lines`: how many its task has added and removed, if git can tell.
    """

    commit: str = ""
    left: int = 0
    why: str = ""
    gathered: int = 0
    tree: str = ""  # of the commit, when nothing is left
    lines: tuple[int, int] | None = None


class Checkout(Protocol):
    """Workspaces. One is planned, then recorded, then made: so nothing made is ever unowned.

    All raise `Refused` when it cannot be had as asked (a conflict, a base that is not there).
    """

    def plan(self, site: Site) -> Workspace:
        """Where it will be. Makes nothing."""

    def prepare(self, workspace: Workspace, site: Site) -> None:
        """Idempotent: called again after a crash, it finishes what it began."""

    def interrupt(self, workspace: Workspace, site: Site) -> None:
        """End the set-up command that `prepare` runs now, if it runs one; `prepare` then raises."""

    def discard(self, workspace: Workspace, *, task: str, project: str) -> None:
        """Remove a workspace that no run has had, whole or half made, and its branch. Idempotent."""

    def commit(self, workspace: Workspace) -> str:
        """The commit its branch is at, or the empty string."""

    def finish(self, workspace: Workspace, site: Site, *, gather: bool) -> Tip:
        """Look at what its run left; with `gather`, commit the changes that no commit has."""

    def pack(self, workspace: Workspace, commit: str) -> Sequence[Piece]:
        """The commit, for other hosts, last; before it its other parts, if it is large.

        None: they can have it without, or it is too large.
        """

    def missing(self, task: Task, commits: Sequence[str]) -> list[str]:
        """The commits that the task's repository does not have on this machine."""

    def bring(self, task: Task, pieces: Sequence[Piece], wanted: Sequence[str]) -> list[str]:
        """Take the pieces into the task's repository; what it then still does not have of `wanted`."""
