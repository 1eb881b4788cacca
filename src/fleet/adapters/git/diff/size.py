"""How many lines a task changed: what was committed at a run's end, or its worktree as it is now."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import DIFF_SECONDS, QUIET, Repo, run_git
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.run import Workspace
    from fleet.ports import Merge

AT_ONCE = 4
LIVE_SECONDS = 2.0  # for git to look at a worktree: a list does not wait longer for it
_COUNTS = re.compile(r"(\d+) (insertion|deletion)")

Lines = tuple[int, int]  # added, removed


class WorkSpan(NamedTuple):
    """`brought`: the work of other tasks that it started from."""

    task: str
    workspace: Workspace
    brought: tuple[Merge, ...] = ()


def committed_lines(work: WorkSpan, head: str) -> Lines | None:
    """The lines that the task itself changed, without what it started from. None: git cannot tell."""
    if not head or not _is_known(work):
        return None
    if head == work.workspace.base:
        return 0, 0
    with suppress(FleetError, OSError):
        return _between(Path(work.workspace.root), _own_start(work, head), head)
    return None


class LiveLines:
    """The lines of worktrees as they are now: git looks at several at once, beside the caller.

    Committed or not, without files that git does not know yet. Threads of our own, because a pool
    would load the library's logging into every list.
    """

    def __init__(self, works: Mapping[str, WorkSpan]) -> None:
        self._left = [(name, work) for name, work in works.items() if _is_known(work)]
        self._sizes: dict[str, Lines] = {}
        count = min(AT_ONCE, len(self._left))
        self._threads = [Thread(target=self._measure, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def result(self) -> dict[str, Lines]:
        """By name, of those that are here."""
        for thread in self._threads:
            thread.join()
        return self._sizes

    def _measure(self) -> None:
        with suppress(IndexError):  # another thread took the last one
            while True:
                name, work = self._left.pop()
                if (size := _now(work)) is not None:
                    self._sizes[name] = size


def _is_known(work: WorkSpan) -> bool:
    space = work.workspace
    return bool(space.branch and space.base and space.root)


def _now(work: WorkSpan) -> Lines | None:
    root = Path(work.workspace.root)
    with suppress(FleetError, OSError):
        if not os.path.lexists(root / ".git"):  # git would take a repository around it
            return None
        start = work.workspace.base
        if work.brought and (head := _head(root)):
            start = _own_start(work, head)
        return _between(root, start, seconds=LIVE_SECONDS)
    return None


def _head(root: Path) -> str:
    from fleet.adapters.git.tree import Tree  # noqa: PLC0415  # start-up time

    tree = Tree.at(root)
    return tree.commit("HEAD") if tree else ""


def _own_start(work: WorkSpan, head: str) -> str:
    space = work.workspace
    if head == space.base:
        return head
    from fleet.adapters.git.diff.span import WantedDiff, start_of  # noqa: PLC0415  # start-up time

    wanted = WantedDiff(work.task, brought=work.brought)
    return start_of(Repo.of(Path(space.root)), space.base, space.onto, wanted, head)


def _between(directory: Path, *ends: str, seconds: float = DIFF_SECONDS) -> Lines | None:
    plain = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
    words = (*QUIET, "-c", "core.fsmonitor=false", "diff", "--shortstat", *plain, *ends, "--")
    done = run_git(directory, *words, env={"GIT_OPTIONAL_LOCKS": "0"}, timeout=seconds)
    if done.status:
        return None
    counts = {kind: int(number) for number, kind in _COUNTS.findall(done.out)}
    return counts.get("insertion", 0), counts.get("deletion", 0)
