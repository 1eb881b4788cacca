"""Workspaces: planned, made and committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
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


class Checkout(Protocol):
    """Workspaces. One is planned, then recorded, then made: so nothing made is ever unowned.

    All raise `Refused` when it cannot be had as asked (a conflict, a base that is not there).
    """

    def plan(self, site: Site) -> Workspace:
        """Where it will be. Makes nothing."""

    def prepare(self, workspace: Workspace, site: Site) -> None:
        """Idempotent: called again after a crash, it finishes what it began."""

    def commit(self, workspace: Workspace) -> str:
        """The commit its branch is at, or the empty string."""
