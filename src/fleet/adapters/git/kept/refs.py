"""Work that is nowhere else, saved under hidden refs before its worktree is removed.

`refs/fleet/kept/<task>/<n>` is a snapshot (see `snapshot`): commits, index, uncommitted changes and
untracked files. What git ignores is not in it, nor are empty directories and permissions other than
the executable bit. What is committed comes back as git checks it out, all else byte for byte.
Nothing removes such a ref but `drop`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.kept.snapshot import Snapshot, SnapshotTaking
from fleet.adapters.git.repo import Repo, run_git, text_of
from fleet.adapters.git.tree import OURS, Tree
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.adapters.git.tree import TreeState
    from fleet.domain.run import Workspace

KEPT_REFS = "refs/fleet/kept/"
TRIES = 100
SIZE_SECONDS = 5.0
NOBODY = "0" * 40


@dataclass(frozen=True, slots=True)
class KeptRef:
    """`id` names it for the user: `t-31/1`. `commit` holds everything."""

    id: str
    commit: str
    at: int  # in seconds
    snapshot: Snapshot

    @property
    def ref(self) -> str:
        return KEPT_REFS + self.id

    @property
    def task(self) -> str:
        return self.id.rpartition("/")[0]

    @property
    def missing(self) -> tuple[str, ...]:
        """Files that could not be read, so they are not in it."""
        return self.snapshot.missing


def keep(
    workspace: Workspace,
    label: str,
    *,
    seen: tuple[Tree, TreeState] | None = None,
    saved: Mapping[str, bool] | None = None,
) -> KeptRef | None:
    """Save all work that is only in this workspace; None when there is none. Twice gives the same.

    `seen`: the tree as it was a moment ago, perhaps no longer at its root. `saved`: of some
    commits, whether they are elsewhere, too. Raise `Unavailable` when it is no worktree, for then
    fleet cannot tell what work is in it.
    """
    root = Path(workspace.root or workspace.path)
    tree = seen[0] if seen else Tree.at(root)
    if tree is None:
        raise Unavailable(f"{root} is not a working tree of git.", fix="Inspect it by hand.")
    look = seen[1] if seen else tree.look()
    taking = SnapshotTaking(tree, branch=workspace.branch, base=workspace.base, root=str(root))
    taken = taking.take(look, saved)
    if taken is None:
        return None
    files, snapshot, parents = taken
    task = _component(label)
    repo = Repo(tree.root, tree.gitdir)
    earlier = list_kept(repo, task)
    for known in earlier:
        if known.snapshot == snapshot and _facts(tree, known.commit) == (files, parents.split()):
            return known
    commit = taking.write(taken, f"Kept of {snapshot.branch or label}")
    first = 1 + max([_number(k.id) for k in earlier], default=0)
    for number in range(first, first + TRIES):  # another process may take one first
        words = ("update-ref", f"{KEPT_REFS}{task}/{number}", commit, NOBODY)
        if tree.git(*words, check=False).status == 0:
            return find_kept(repo, f"{task}/{number}")
    raise Refused(f"git could not keep {commit} for {label}.", fix=f"git branch kept {commit}")


def list_kept(repo: Repo, task: str = "") -> list[KeptRef]:
    """Oldest first within each task."""
    form = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents)%00%00"
    done = run_git(repo.top, "for-each-ref", f"--format={form}", f"{KEPT_REFS}{task}")
    rows = []
    for record in done.raw.split(b"\0\0\n"):
        name, _, rest = text_of(record).partition("\0")
        if not name:
            continue
        commit, at, message = rest.split("\0", 2)
        snapshot = Snapshot.of(message)
        if snapshot is not None:
            rows.append(KeptRef(name.removeprefix(KEPT_REFS), commit, int(at or 0), snapshot))
    return sorted(rows, key=lambda k: (k.task, _number(k.id)))


def bytes_of(repo: Repo, kept: Sequence[KeptRef]) -> int:
    """What would be free without them, once git collects it; 0 where that takes git too long."""
    if not kept:
        return 0
    commits = [each.commit for each in kept]
    others = ("--not", "--branches", "--tags", "--remotes")
    words = ("rev-list", "--disk-usage", "--objects", *commits, *others)
    done = run_git(repo.top, *words, timeout=SIZE_SECONDS)
    return int(done.out) if done.status == 0 else 0


def find_kept(repo: Repo, name: str) -> KeptRef:
    """Find kept work by its id (`t-31/1`), or as the only one of a task."""
    name_of_ref = name.strip().removeprefix(KEPT_REFS)
    rows = list_kept(repo, name_of_ref.partition("/")[0])
    matches = [k for k in rows if k.id == name_of_ref] or [k for k in rows if k.task == name_of_ref]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise BadInput(
            f"{name_of_ref} has {len(matches)} saved states: {', '.join(k.id for k in matches)}.",
            fix="Name one.",
            code="ambiguous",
        )
    raise NotFound(f"Nothing is kept as '{name_of_ref[:60]}'.", fix="`fleet kept` lists what is.")


def drop(repo: Repo, kept: KeptRef) -> None:
    """Delete the ref; until git collects garbage, its objects are still there."""
    done = run_git(repo.top, *OURS, "update-ref", "-d", kept.ref, kept.commit)
    if done.status and repo.has_ref(kept.ref):
        raise Refused(f"{kept.id} could not be dropped: {done.words}")


def _facts(tree: Tree, commit: str) -> tuple[str, list[str]]:
    words = tree.git("show", "--no-patch", "--format=%T %P", commit).out.split()
    return words[0], words[1:]


def _number(name: str) -> int:
    last = name.rpartition("/")[2]
    return int(last) if last.isascii() and last.isdigit() else 0


def _component(label: str) -> str:
    """The label as one part of a ref's name."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", label).strip("-")
    return plain or "work"
