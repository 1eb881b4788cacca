"""Work that is nowhere else, saved under hidden refs before its place is removed.

`refs/fleet/kept/<task>/<n>` is a snapshot (see `snapshot`): commits, index, uncommitted changes and
untracked files. What git ignores is not in it, nor are empty directories and permissions other than
the executable bit. What is committed comes back as git checks it out, all else byte for byte.
Nothing removes such a ref but `drop`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import Repo, run_git, text_of
from fleet.adapters.git.snapshot import Snapshot, Taking
from fleet.adapters.git.tree import OURS, Tree
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from fleet.domain.run import Workspace

PLACE = "refs/fleet/kept/"
TRIES = 100  # at a number that somebody else may take first
NOBODY = "0" * 40
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*/[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Kept:
    """`id` is how it is asked for: `t-31/1`. `commit` holds everything."""

    id: str
    commit: str
    at: int  # in seconds
    what: Snapshot

    @property
    def ref(self) -> str:
        return PLACE + self.id

    @property
    def task(self) -> str:
        return self.id.rpartition("/")[0]

    @property
    def missing(self) -> tuple[str, ...]:
        """Files that could not be read, so they are not in it."""
        return self.what.missing


def keep(workspace: Workspace, label: str, *, at: Tree | None = None) -> Kept | None:
    """Save all that is only in this workspace; None when there is nothing. Said again: the same.

    `at`: where it is, if not at its root any more. Raise `Unavailable` when it is no worktree, for
    then nothing can be said about it.
    """
    root = Path(workspace.root or workspace.path)
    tree = at or Tree.at(root)
    if tree is None:
        raise Unavailable(f"{root} is not a working tree of git.", fix="Inspect it by hand.")
    taking = Taking(tree, branch=workspace.branch, base=workspace.base, root=str(root))
    taken = taking.take()
    if taken is None:
        return None
    files, what, parents = taken
    task = _component(label)
    repo = Repo(tree.root, tree.gitdir)
    for known in list_kept(repo, task):
        if known.what == what and _facts(tree, known.commit) == (files, parents.split()):
            return known
    commit = taking.write(taken, f"Kept of {what.branch or label}")
    for _ in range(TRIES):
        number = 1 + max([_number(k) for k in _ids(repo, task)], default=0)
        words = ("update-ref", f"{PLACE}{task}/{number}", commit, NOBODY)
        if tree.git(*words, check=False).status == 0:
            return find_kept(repo, f"{task}/{number}")
    raise Refused(f"git could not keep {commit} for {label}.", fix=f"git branch kept {commit}")


def list_kept(repo: Repo, task: str = "") -> list[Kept]:
    """Oldest first within each task."""
    form = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents)%00%00"
    asked = run_git(repo.top, "for-each-ref", f"--format={form}", f"{PLACE}{task}")
    found = []
    for record in asked.raw.split(b"\0\0\n"):
        name, _, rest = text_of(record).partition("\0")
        if not name:
            continue
        commit, at, message = rest.split("\0", 2)
        what = Snapshot.of(message)
        if what is not None:
            found.append(Kept(name.removeprefix(PLACE), commit, int(at or 0), what))
    return sorted(found, key=lambda k: (k.task, _number(k.id)))


def find_kept(repo: Repo, name: str) -> Kept:
    """By id (`t-31/1`), or the only one of a task."""
    wanted = name.strip().removeprefix(PLACE)
    known = list_kept(repo)
    found = [k for k in known if k.id == wanted] or [k for k in known if k.task == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput(
            f"{wanted} has {len(found)} of them: {', '.join(k.id for k in found)}.",
            fix="Name one.",
            code="ambiguous",
        )
    raise NotFound(f"Nothing is kept as '{wanted[:60]}'.", fix="`fleet kept` lists what is.")


def drop(repo: Repo, kept: Kept) -> None:
    """For good, unless git's own dangling objects are still there."""
    done = run_git(repo.top, *OURS, "update-ref", "-d", kept.ref, kept.commit)
    if done.status and repo.has_ref(kept.ref):
        raise Refused(f"{kept.id} could not be dropped: {done.words}")


def is_kept(repo: Repo, commit: str) -> bool:
    """Whether what we keep has this commit."""
    words = ("for-each-ref", "--count=1", "--format=%(refname)", "--contains", commit, PLACE)
    return bool(repo.git(*words, check=False).out.strip())


def _facts(tree: Tree, commit: str) -> tuple[str, list[str]]:
    said = tree.git("show", "--no-patch", "--format=%T %P", commit).out.split()
    return said[0], said[1:]


def _ids(repo: Repo, task: str) -> list[str]:
    words = ("for-each-ref", "--format=%(refname)", f"{PLACE}{task}/")
    return text_of(run_git(repo.top, *words).raw).split()


def _number(name: str) -> int:
    last = name.rpartition("/")[2]
    return int(last) if last.isascii() and last.isdigit() else 0


def _component(label: str) -> str:
    """As a part of a ref's name."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", label).strip("-")
    return plain or "work"
