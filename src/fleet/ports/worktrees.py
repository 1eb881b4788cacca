"""What git does with the worktree of a task, and what it replies."""

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
class DiffRow:
    """`text` is as git writes it; `cut`: it is only the beginning."""

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
    """`change`: added, modified, deleted, renamed or copied; `old_path`: the name that it had.

    `folded`: why a page should not open it by itself (lock file, generated, long).
    `cut`: how many lines of its hunks were left out.
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
    """`start` and `end`: the commits or trees that were compared.

    `total`: how many files changed; `files` are fewer when a reply has no room for all.
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
    """`nothing`: the remote had it all. `url` is that of the pull request.

    `address`: where the remote is.
    """

    task: str
    branch: str
    remote: str
    nothing: bool
    url: str = ""
    address: str = ""


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


class Ahead(NamedTuple):
    """A branch with commits that `onto`, which its project has checked out, does not have.

    `conflicts`: the files in which the two conflict.
    """

    branch: str
    onto: str
    conflicts: tuple[str, ...] = ()


class Finished(NamedTuple):
    """Work of a task that has not landed on `onto` yet. `brings`: the tasks whose work it contains.

    `brought`: the branches and commits of those that it waited for.
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
    """What git does with the worktrees of this host; refused when the task has none here."""

    def ahead(self, project: str, branches: Sequence[str]) -> list[Ahead]:
        """The branches that have not landed. Empty where there is no repository."""

    def outlook(self, repository: str, works: Sequence[Finished]) -> dict[str, Outlook | None]:
        """The outlook by task, without those that have landed. None: its branch does not exist any more.

        Raise `Unavailable` where the repository is not here.
        """

    def gate_result(self, task: Task, tree: str) -> str:
        """The id of what the task's gate said of this tree; empty: it has no gate."""

    def status(self, task: Task) -> WorktreeRow: ...

    def work(self, task: Task) -> tuple[str, bool]:
        """A commit with all of its work, and whether some of that was not committed.

        The worktree, its index and its branch stay as they are.
        """

    def diff(self, task: Task, *, stat: bool) -> str:
        """What it has changed since it started, as git writes it."""

    def changes(self, task: Task, wish: DiffWish) -> TaskDiff:
        """What it has changed, in parts; as much as a reply has room for."""

    def count_lines(self, task: Task, path: str) -> int | None:
        """The lines of a file in the task's work; None: there is no such file, or it is not text."""

    def commit(self, task: Task, message: str) -> CommitRow: ...

    def push(self, task: Task) -> PushRow: ...

    def origin(self, task: Task) -> tuple[str, str]:
        """The task's repository, and the branch that the repository has checked out."""

    def repository_of(self, task: Task) -> str:
        """The repository of this host that has its work, brought from another host if need be; or empty."""

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
        """Whether this branch of the remote has the commit; it is asked now."""

    def revert(self, repository: str, onto: str, span: tuple[str, str], message: str) -> str:
        """A commit on `onto` without what came from one commit to the other; empty: it conflicts.

        It is on no branch yet, and is kept until it has landed. Raise `Unavailable` elsewhere.
        """

    def merge(self, task: Task, onto: str, *, tested: bool) -> MergeRow:
        """`tested`: raise `Refused` when the gate has not passed what would come of it."""

    def propose(self, task: Task, title: str, body: str, base: str) -> PushRow: ...
