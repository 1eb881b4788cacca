"""What git does with the worktree of a task, and what it replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from fleet.domain.task import Task


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """`change`: added, modified, deleted, renamed, untracked or conflict."""

    path: str
    change: str


@dataclass(frozen=True, slots=True)
class WorktreeRow:
    """`ahead` and `behind`: commits, against what its project has checked out.

    `files` are the first of the `changes` that are not committed; `unpushed` commits are on no
    remote that is known here.
    """

    task: str
    branch: str
    path: str
    head: str
    ahead: int
    behind: int
    unpushed: int
    changes: int
    files: tuple[ChangedFile, ...]
    in_progress: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitRow:
    task: str
    branch: str
    commit: str
    files: int


@dataclass(frozen=True, slots=True)
class PushRow:
    """`nothing`: the remote had it all. `url` is that of the pull request."""

    task: str
    branch: str
    remote: str
    nothing: bool
    url: str = ""


@dataclass(frozen=True, slots=True)
class MergeRow:
    """`onto` went from `before` to `commit`; `nothing`: it had it all.

    `checkout`: the directory whose files followed, if `onto` is checked out in one.
    """

    task: str
    branch: str
    onto: str
    commit: str
    fast_forward: bool
    nothing: bool
    before: str = ""
    checkout: str = ""


class Worktrees(Protocol):
    """What git does with the worktrees of this host; refused when the task has none here."""

    def status(self, task: Task) -> WorktreeRow: ...

    def commit(self, task: Task, message: str) -> CommitRow: ...

    def push(self, task: Task) -> PushRow: ...

    def merge(self, task: Task, onto: str) -> MergeRow: ...

    def propose(self, task: Task, title: str, body: str, base: str) -> PushRow: ...
