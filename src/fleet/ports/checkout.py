"""Plan, make and commit workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.hosts.piece import Piece
    from fleet.domain.run import Run, Workspace
    from fleet.domain.task import Task


class Merge(NamedTuple):
    """Work to start from: a branch, or its commit if the branch no longer exists."""

    branch: str
    commit: str = ""


class Site(NamedTuple):
    """Where a run is to work, and what its workspace must contain."""

    task: Task
    run: Run
    merges: tuple[Merge, ...] = ()  # the work of the tasks that it waited for, in order
    previous: Workspace | None = None  # that of an earlier run, whose processes are gone
    start: str = ""  # a commit to continue from, when there is no `previous`


class Tip(NamedTuple):
    """The state of a workspace when its run has ended.

    `left`: how many changed files are uncommitted; `why`: what kept Fleet from committing them.
    `gathered`: how many files are in the commit that Fleet made of uncommitted changes.
    `lines`: how many lines the task has added and removed, if git can tell.
    """

    commit: str = ""
    left: int = 0
    why: str = ""
    gathered: int = 0
    tree: str = ""  # the commit's tree, if nothing is uncommitted
    lines: tuple[int, int] | None = None


class Checkout(Protocol):
    """Makes workspaces. One is planned, then recorded, then made, so that none is ever unowned.

    All methods raise `Refused` when it cannot be made as requested (a conflict, a missing base).
    """

    def plan(self, site: Site) -> Workspace:
        """Return where a workspace will be, without making it."""

    def prepare(self, workspace: Workspace, site: Site) -> None:
        """Make the workspace. Idempotent: a call after a crash finishes what was begun."""

    def interrupt(self, workspace: Workspace, site: Site) -> None:
        """End the set-up command that `prepare` is running, if any; `prepare` then raises."""

    def discard(self, workspace: Workspace, *, task: str, project: str) -> None:
        """Remove a workspace that no run has had, whole or half made, and its branch. Idempotent."""

    def commit(self, workspace: Workspace) -> str:
        """Return the commit that the workspace's branch is at; empty: it has no branch."""

    def finish(self, workspace: Workspace, site: Site, *, gather: bool) -> Tip:
        """Return what the run left; with `gather`, first commit its uncommitted changes."""

    def pack(self, workspace: Workspace, commit: str) -> Sequence[Piece]:
        """Pack a commit for other hosts, in several pieces if it is large, the commit's own last.

        Empty when other hosts can get it without pieces, or it is too large.
        """

    def missing(self, task: Task, commits: Sequence[str]) -> list[str]:
        """Return those of the commits that the task's repository on this machine lacks."""

    def bring(self, task: Task, pieces: Sequence[Piece], wanted: Sequence[str]) -> list[str]:
        """Add the pieces to the task's repository; return what it then still lacks of `wanted`."""
