"""How many lines a task changed: what was committed at a run's end, or its worktree as it is now."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.diff.span import DIFF_SECONDS, Wanted, start_of
from fleet.adapters.git.repo import QUIET, Repo, run_git
from fleet.adapters.git.tree import Tree
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


class Work(NamedTuple):
    """`brought`: the work of other tasks that it started from."""

    task: str
    workspace: Workspace
    brought: tuple[Merge, ...] = ()


def committed_lines(work: Work, head: str) -> Lines | None:
    """Those that the task itself changed, without what it started from. None: git cannot tell."""
    if not head or not _is_known(work):
        return None
    with suppress(FleetError, OSError):
        return _between(Path(work.workspace.root), _own_start(work, head), head)
    return None


def live_lines(works: Mapping[str, Work]) -> dict[str, Lines]:
    """By name, of those that are here: committed or not, without files that git does not know yet."""
    known = {name: work for name, work in works.items() if _is_known(work)}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        sizes = threads.map(_now, known.values())
    return {name: size for name, size in zip(known, sizes, strict=True) if size is not None}


def _is_known(work: Work) -> bool:
    space = work.workspace
    return bool(space.branch and space.base and space.root)


def _now(work: Work) -> Lines | None:
    root = Path(work.workspace.root)
    with suppress(FleetError, OSError):
        if tree := Tree.at(root):
            head = tree.commit("HEAD") if work.brought else ""
            start = _own_start(work, head) if head else work.workspace.base
            return _between(root, start, seconds=LIVE_SECONDS)
    return None


def _own_start(work: Work, head: str) -> str:
    space = work.workspace
    if head == space.base:
        return head
    wanted = Wanted(work.task, brought=work.brought)
    return start_of(Repo.of(Path(space.root)), space.base, space.onto, wanted, head)


def _between(directory: Path, *ends: str, seconds: float = DIFF_SECONDS) -> Lines | None:
    words = (*QUIET, "diff", "--shortstat", "--no-ext-diff", *ends, "--")
    done = run_git(directory, *words, env={"GIT_OPTIONAL_LOCKS": "0"}, timeout=seconds)
    if done.status:
        return None
    counts = {kind: int(number) for number, kind in _COUNTS.findall(done.out)}
    return counts.get("insertion", 0), counts.get("deletion", 0)
