"""The two trees between which a task's own work lies."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.commit import left_out
from fleet.adapters.git.diff.history import History
from fleet.adapters.git.landing.merge_and_push import merged_tree
from fleet.adapters.git.repo import DIFF_SECONDS, Repo, is_name, run_git
from fleet.adapters.git.tree import Tree
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, NotFound, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.git.diff.history import Commit
    from fleet.domain.run import Workspace
    from fleet.ports import Merge

MOST_COUNTED = 10_000_000  # bytes of a file whose lines are counted


class WantedDiff(NamedTuple):
    """Which work is to be compared, and with what.

    `tip`: its recorded commit. `live`: what its worktree holds now counts, too. `before`: the commit
    of the run before. `brought`: the work of other tasks that it started from. `private`: files that
    Fleet copied into its worktree.
    """

    task: str
    tip: str = ""
    live: bool = True
    before: str = ""
    brought: tuple[Merge, ...] = ()
    against: str = ""
    private: tuple[str, ...] = ()


class DiffSpan(NamedTuple):
    """From one tree or commit to another, of the repository in this directory."""

    directory: Path
    start: str
    end: str


def span(workspace: Workspace, project: str, wanted: WantedDiff) -> DiffSpan:
    """Where the task's work begins and ends. Raise `NotFound` when nothing is left of it."""
    if not workspace.branch:
        raise Refused(
            f"{wanted.task} works in {workspace.path} itself (--in-place), so Fleet cannot tell its"
            " changes from yours.",
            fix=f"git -C {workspace.path} diff",
            code="no_branch",
        )
    repo = Repo.of(Path(project or workspace.path))
    tree = Tree.at(Path(workspace.root)) if wanted.live and workspace.root else None
    if tree is not None:
        head, end = tree.commit("HEAD"), _files(tree, wanted.private)
    else:
        head = end = _recorded(repo, workspace.branch, wanted)
    if wanted.against:
        return DiffSpan(repo.top, _fork_point(repo, wanted.against, head), end)
    start = start_of(repo, workspace.base, workspace.onto, wanted, head)
    return DiffSpan(repo.top, start, end)


def count_lines(span: DiffSpan, path: str) -> int | None:
    """The lines of a file at the end of the span; None: there is no such file, or it is not text."""
    blob = f"{span.end}:{path}"
    size = run_git(span.directory, "cat-file", "-s", blob)
    if size.status or int(size.out) > MOST_COUNTED:
        return None
    text = run_git(span.directory, "cat-file", "blob", blob).raw
    return None if b"\0" in text else text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


def _files(tree: Tree, private: Sequence[str]) -> str:
    """A tree of all files there that git does not ignore, committed or not."""
    with tree.private_index() as mine:
        out = left_out(tree, private)
        tree.add_all("--ignore-errors", leaving=out, index=mine, check=False, timeout=DIFF_SECONDS)
        return tree.git("write-tree", index=mine, timeout=DIFF_SECONDS).out.strip()


def _recorded(repo: Repo, branch: str, wanted: WantedDiff) -> str:
    """The branch, if it has the recorded work or a person rewrote it; else the recorded commit."""
    tip, ref = wanted.tip, f"refs/heads/{branch}"
    known = bool(tip) and repo.has_commit(tip)
    is_live = wanted.live and repo.has_branch(branch)
    if is_live and (not known or repo.is_ancestor(tip, ref) or repo.was_at(branch, tip)):
        return repo.commit(ref)
    if known:
        return tip
    raise NotFound(
        f"Neither the worktree nor the branch {branch} exists any more.",
        fix="`fleet kept` lists what was saved of it.",
    )


def _fork_point(repo: Repo, against: str, head: str) -> str:
    """Where the work and another branch parted."""
    if not is_name(against) or not repo.has_commit(against):
        raise BadInput(
            f"There is no branch or commit '{against[:80]}' in {repo.top}.",
            fix="`git branch --all` lists branches.",
        )
    return repo.git("merge-base", against, head, check=False).out.strip() or repo.commit(against)


def start_of(repo: Repo, base: str, branch: str, wanted: WantedDiff, head: str) -> str:
    """The parent of the work's first commit, with what it merged of the branch where it lands."""
    history = History(repo, [head, *needed(base, branch, wanted)])
    return start_in(history, repo, (base, branch), wanted, head)


def needed(base: str, branch: str, wanted: WantedDiff) -> list[str]:
    """What a history must have for `start_in`, besides the head."""
    names = [name for merge in wanted.brought for name in _names(merge)]
    return [wanted.before or base, *names, *([f"refs/heads/{branch}"] if branch else [])]


def start_in(
    history: History, repo: Repo, origin: tuple[str, str], wanted: WantedDiff, head: str
) -> str:
    """`origin`: the commit that it began with, and the branch where it lands."""
    base, branch = origin
    onto = history.commit(f"refs/heads/{branch}")
    landed = bool(onto) and history.is_ancestor(head, onto)
    others = [history.commit(name) for name in needed(base, "", wanted)]
    own = _own(history, wanted.task, head, [*others, *([onto] if not landed else [])])
    if own and not own[0].parents:
        return base
    start = own[0].parents[0] if own else head
    if landed:
        merged = next((c.parents[1] for c in reversed(own) if len(c.parents) > 1), "")
    else:
        merged = history.merge_base(onto, head) if onto else ""
    if not merged or history.is_ancestor(merged, start):
        return start
    return merged_tree(repo, start, merged)[0]  # with the marks of conflicts that it resolved


def _names(merge: Merge) -> list[str]:
    return [
        *([merge.commit] if merge.commit else []),
        *([f"refs/heads/{merge.branch}"] if merge.branch else []),
    ]


def _own(history: History, task: str, head: str, others: Sequence[str]) -> list[Commit]:
    """The work's own commits, which none of the others has, oldest first, without the merges it began with."""
    commits = history.first_parents(head, others)
    ours = re.compile(rf"Merge \S+ for {re.escape(task)}")
    while commits and len(commits[0].parents) > 1 and ours.fullmatch(commits[0].subject):
        commits.pop(0)
    return commits
