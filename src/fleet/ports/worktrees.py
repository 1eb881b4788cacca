"""The worktrees of tasks: their state, diffs, pushes and merges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple, dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.task import Task
    from fleet.ports.checkout import Merge
    from fleet.ports.forge import Forges


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """`change`: added, modified, deleted, renamed, untracked or conflict."""

    path: str
    change: str


@dataclass(frozen=True, slots=True)
class WorktreeRow:
    """A task's worktree. `ahead` and `behind`: commits, compared with what its project has checked out.

    `files`: the first of the `changes` uncommitted files; `unpushed`: commits that are on no
    remote, as far as this clone knows.
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
class DiffRow:
    """A diff as git writes it. `cut`: `text` is only its beginning."""

    task: str
    text: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Hunk:
    r"""Lines of a file that changed together. Each begins with ` `, `+`, `-` or `\`, as in git's diff."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    heading: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A changed file. `change`: added, modified, deleted, renamed or copied.

    `old_path`: its path before; `folded`: why a page should not open it by itself (lock file,
    generated, long); `cut`: how many lines of its hunks are left out.
    """

    path: str
    change: str
    added: int
    removed: int
    old_path: str = ""
    binary: bool = False
    folded: str = ""
    hunks: tuple[Hunk, ...] = ()
    cut: int = 0


@dataclass(frozen=True, slots=True)
class TaskDiff:
    """What a task changed. `start` and `end`: the commits or trees that were compared.

    `total`: how many files changed; `files` has fewer when a reply has no room for all.
    """

    task: str
    start: str
    end: str
    files: tuple[FileDiff, ...]
    total: int
    added: int
    removed: int


class DiffWish(NamedTuple):
    """What to compare a task's work with, and which part of it.

    `against`: a branch; empty: where the task began. `run`: only what this run changed.
    """

    against: str = ""
    run: int = 0
    path: str = ""
    stat: bool = False


@dataclass(frozen=True, slots=True)
class CommitRow:
    task: str
    branch: str
    commit: str
    files: int


@dataclass(frozen=True, slots=True)
class PushRow:
    """A push. `nothing`: the remote had all commits already. `url`: the pull request's.

    `address`: the remote's.
    """

    task: str
    branch: str
    remote: str
    nothing: bool
    url: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class MergeRow:
    """A merge, which moved `onto` from `before` to `commit`; `nothing`: it had all commits.

    `checkout`: the directory whose files were updated, if one has `onto` checked out.
    """

    task: str
    branch: str
    onto: str
    commit: str
    fast_forward: bool
    nothing: bool
    before: str = ""
    checkout: str = ""


class Ahead(NamedTuple):
    """A branch with commits that `onto`, which its project has checked out, does not have.

    `conflicts`: the files in which the two conflict.
    """

    branch: str
    onto: str
    conflicts: tuple[str, ...] = ()


class Finished(NamedTuple):
    """Work of a task that has not landed on `onto`. `brings`: the tasks whose work it contains.

    `brought`: the branches and commits of the tasks that it waited for.
    """

    task: str
    branch: str
    base: str
    onto: str
    tip: str
    brought: tuple[Merge, ...] = ()
    brings: tuple[str, ...] = ()


class Outlook(NamedTuple):
    """What work changed, and what it would conflict with now.

    `conflicts`: the files in which it conflicts with its branch; `rivals`: the other tasks that
    it conflicts with. `tree`: what its gate tests.
    """

    files: int
    added: int
    removed: int
    conflicts: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    tree: str = ""


class Worktrees(Protocol):
    """The worktrees of this host. Methods raise `Refused` when the task has none here."""

    def ahead(self, project: str, branches: Sequence[str]) -> list[Ahead]:
        """Return the branches that have not landed; none where there is no repository."""

    def outlook(self, repository: str, works: Sequence[Finished]) -> dict[str, Outlook | None]:
        """Return the outlook by task, without those that have landed; None: its branch is gone.

        Raise `Unavailable` where the repository is not here.
        """

    def gate_result(self, task: Task, tree: str) -> str:
        """Return the id of the result of the task's gate for this tree; empty: it has no gate."""

    def status(self, task: Task) -> WorktreeRow: ...

    def work(self, task: Task) -> tuple[str, bool]:
        """Return a commit with all of the task's work, and whether some of it was uncommitted.

        The worktree, its index and its branch stay as they are.
        """

    def diff(self, task: Task, *, stat: bool) -> str:
        """Return the diff of what the task has changed since it started."""

    def changes(self, task: Task, wish: DiffWish) -> TaskDiff:
        """Return what the task has changed, in parts, as far as a reply has room."""

    def count_lines(self, task: Task, path: str) -> int | None:
        """Count the lines of a file in the task's work; None: it does not exist or is not text."""

    def commit(self, task: Task, message: str) -> CommitRow: ...

    def push(self, task: Task) -> PushRow: ...

    def origin(self, task: Task) -> tuple[str, str]:
        """The task's repository, and the branch that the repository has checked out."""

    def repository_of(self, task: Task) -> str:
        """Return this host's repository with the task's work, if need be fetched from another host.

        Empty when there is none.
        """

    def check_branch(self, repository: str, branch: str) -> None:
        """Raise `NotFound` when the repository has no such branch, `Unavailable` when it is not here."""

    def has_work(self, repository: str, branch: str, commit: str, tip: str) -> bool:
        """Whether this branch has the commit with which work landed, or the changes of its `tip`.

        Raise `NotFound` when there is no such branch, `Unavailable` when the repository is not here.
        """

    def check_remote(self, repository: str, remote: str) -> None:
        """Raise `Refused` when the repository has no such remote, `Unavailable` when it is not here."""

    def repository(self, project: str) -> str:
        """The git directory of this project."""

    def forges(self) -> Forges:
        """Where the remotes of this host's repositories are."""

    def remote_has(self, repository: str, remote: str, branch: str, commit: str) -> bool:
        """Ask the remote whether this branch has the commit."""

    def revert(self, repository: str, onto: str, span: tuple[str, str], message: str) -> str:
        """Make a commit on `onto` that reverts the changes of `span`; empty: it conflicts.

        It is on no branch yet, and is kept until it has landed. Raise `Unavailable` when the
        repository is not on this host.
        """

    def merge(self, task: Task, onto: str, *, tested: bool) -> MergeRow:
        """Merge the task's work; `tested`: raise `Refused` unless its gate passed the result."""

    def propose(self, task: Task, title: str, body: str, base: str) -> PushRow: ...
