"""Landing work on a branch: merges in the object store, worktrees for gates, and the branch's move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fleet.domain.landing.changes import FileChange


JUNIT = ".fleet-junit.xml"  # in a gate's worktree: what `$FLEET_JUNIT_XML` names


class Target(NamedTuple):
    """The commit that a branch is at."""

    commit: str


class Built(NamedTuple):
    """The commit made of another one and a member's work, or the files that conflict.

    `tip`: the newest commit of the member's work.
    """

    commit: str = ""
    tree: str = ""
    conflicts: tuple[str, ...] = ()
    tip: str = ""


class Arrival(NamedTuple):
    """What a landing added to a branch: `commit`, made of `before` and `tip`."""

    before: str
    commit: str
    tip: str
    how: str


class Fit(NamedTuple):
    """How much work changes, and which other work it would conflict with."""

    lines: int
    rivals: tuple[str, ...] = ()


class MemberWork(NamedTuple):
    """The work of a member of a train. `message`: of the commit; `how`: merge or squash.

    `branch`: the task's; commits that a person added there after `tip` are included.
    """

    tip: str
    message: str
    how: str = "merge"
    branch: str = ""


class Branches(Protocol):
    """The branches of one repository. Every method starts git, so it is called beside the loop."""

    def target(self, onto: str) -> Target:
        """Return where a branch is; raise `NotFound` when there is none."""

    def build(self, before: str, work: MemberWork) -> Built:
        """Make the commit in git's object store only, touching no checkout and no branch."""

    def compare(self, before: str, works: Mapping[str, MemberWork]) -> Mapping[str, Fit]:
        """Return, by the same names, what each changed since its merge base with `before`."""

    def move(self, onto: str, after: str, before: str) -> str:
        """Move the branch if it is still at `before`; the checkout that followed, or nothing.

        Raise `Conflict` when it has moved, and `Refused` when its checkout has changes of its own.
        """

    def publish(self, work: MemberWork, branch: str, built: str) -> str:
        """Push what the member brings to this branch of the remote, without force; its commit.

        Raise `Conflict` when that is not what `built` was made of, and `Refused` when the remote's
        branch has commits that are not here.
        """

    def has(self, onto: str, commits: Sequence[str]) -> bool:
        """Whether the branch has all of these commits."""

    def within(self, commit: str, commits: Sequence[str]) -> set[str]:
        """Return those of the commits that are ancestors of `commit`."""

    def tips(self, works: Mapping[str, MemberWork]) -> Mapping[str, str]:
        """Return, by the same names, the commit that `build` would use of each now."""

    def check_home(self, onto: str, arrivals: Mapping[str, Arrival]) -> None:
        """Raise `Refused` unless the branch has the work of each landing: nothing may be lost.

        Squashed work is merged once more and compared; its own commits are kept, under the
        landing's id.
        """

    def came_home(self, onto: str, tip: str) -> bool:
        """Whether the branch has this commit, or the same changes in other commits, or in one."""

    def hold(self, name: str, commit: str) -> None:
        """Keep git from pruning this commit until `release`."""

    def release(self, names: Sequence[str]) -> None: ...

    def release_landed(self, onto: str) -> None:
        """Release held reverts that are on this branch by now."""

    def mainline(self, before: str, tip: str, files: Sequence[str]) -> list[tuple[str, bool]]:
        """The branch's own commits since the work departed, newest first; which changed the files."""

    def tree(self, commit: str) -> str: ...

    def changed(self, before: str, after: str) -> tuple[list[FileChange], str]:
        """The files that differ, and the patch of those that are tests, without context."""

    def patch(self, before: str, after: str, *, most: int) -> str:
        """Return the diff without the commits' names, at most `most` characters."""

    def overlay(self, commit: str, source: str, paths: Sequence[str]) -> Built:
        """Make a commit, on no branch, with these files as they are in `source`."""

    def sides(self, before: str, tip: str, files: Sequence[str]) -> str:
        """Return the diff of what the branch changed in these files since the work left it."""


class GateWorktrees(Protocol):
    """Worktrees in which gates test candidates, one for each gate at a time."""

    def prepare(self, name: str, commit: str) -> Path:
        """The directory in which the gate `name` tests this commit, with the set-up done there."""

    def busy(self) -> Mapping[str, str]:
        """Return, by gate, the directory that was prepared for it last."""

    def report(self, name: str) -> str:
        """The JUnit XML that the gate wrote to `$FLEET_JUNIT_XML`; empty: none."""

    def leave(self, name: str) -> None:
        """Let other gates use the directory of this one, which has ended."""
