"""Restore kept work as a branch, or as a worktree with its changes uncommitted again."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

from fleet.adapters.git.kept.snapshot import changed_entries, feed
from fleet.adapters.git.repo import identity, run_git
from fleet.adapters.git.tree import BIG_TREE_SECONDS, GITLINK, OURS, Tree
from fleet.domain.data import dataclass
from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.adapters.git.kept.refs import KeptRef
    from fleet.adapters.git.repo import Repo
    from fleet.adapters.git.tree import TreeEntry

LINK, EXECUTABLE = "120000", "100755"


@dataclass(frozen=True, slots=True)
class Restored:
    kept: str
    branch: str
    commit: str  # what the branch is at
    path: str = ""  # its worktree


def restore(repo: Repo, kept: KeptRef, *, branch: str = "", into: Path | None = None) -> Restored:
    """Restore the work to a new branch; it also stays kept.

    Without `into`, one commit on top holds the uncommitted changes. With it, fleet makes a worktree
    there, with the same files, index and conflicts as before.
    """
    name = branch or _free(repo, kept)
    repo.check_name(name)
    if repo.has_branch(name):
        raise Refused(f"The branch {name} already exists.", fix="Name another with --branch.")
    if into is None:
        commit = _committed(repo, kept)
        repo.git("branch", "--no-track", name, commit)
        return Restored(kept.id, name, commit)
    if os.path.lexists(into) and (not into.is_dir() or any(into.iterdir())):
        raise Refused(f"{into} already exists.", fix="Choose a directory that does not exist yet.")
    with repo.alone():
        tree = _worktree(repo, kept, name, into)
    return Restored(kept.id, name, kept.snapshot.head, str(tree.root))


def _free(repo: Repo, kept: KeptRef) -> str:
    branch = kept.snapshot.branch or f"kept/{kept.task}"
    name, tries = branch, 0
    while repo.has_branch(name):
        tries += 1
        name = f"{branch}-restored" + (f"-{tries}" if tries > 1 else "")
    return name


def _committed(repo: Repo, kept: KeptRef) -> str:
    if not kept.snapshot.uncommitted and kept.snapshot.head:
        return kept.snapshot.head
    parents = ["-p", kept.snapshot.head] if kept.snapshot.head else []
    words = (
        "commit-tree",
        *parents,
        "-m",
        f"Uncommitted work of {kept.task}",
        f"{kept.commit}^{{tree}}",
    )
    done = run_git(repo.top, *identity(repo.top), *OURS, *words)
    if done.status:
        raise Refused(f"{kept.id} could not be restored: {done.words}")
    return done.out.strip()


def _worktree(repo: Repo, kept: KeptRef, branch: str, into: Path) -> Tree:
    head = kept.snapshot.head
    how = ["-b", branch, "--no-track"] if head else ["--detach", "--no-checkout"]
    repo.git(*OURS, "worktree", "add", "--quiet", *how, str(into), head or kept.commit)
    try:
        tree = _tree_at(into)
        if not head:
            tree.git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        _fill(tree, kept)
    except BaseException:
        repo.git("worktree", "remove", "--force", "--force", str(into), check=False)
        if head:
            repo.git("branch", "-D", branch, check=False)
        raise
    return tree


def _tree_at(root: Path) -> Tree:
    tree = Tree.at(root)
    if tree is None:
        raise Unavailable(f"git made no worktree at {root}.")
    return tree


def _fill(tree: Tree, kept: KeptRef) -> None:
    """Byte for byte: no filter and no line ending of this checkout is applied."""
    snapshot = kept.snapshot
    raw = {e.path: e for e in changed_entries(tree, "", snapshot.raw)} if snapshot.raw else {}
    entries = changed_entries(tree, snapshot.head, kept.commit)
    for entry in entries:
        if entry.mode == "000000":
            _remove(tree.root, entry.path)
    present = [raw.get(e.path, e) for e in entries if e.mode != "000000"]
    for entry in present:
        _write(tree, entry)
    tree.git("read-tree", snapshot.index)
    if snapshot.stages:
        _conflict(tree, snapshot.stages)
    tree.git("update-index", "-q", "--refresh", check=False)


def _conflict(tree: Tree, stages: str) -> None:
    entries = []
    for entry in changed_entries(tree, "", stages):
        stage, _, path = entry.path.partition(b"/")
        entries.append((entry.mode, entry.sha, int(stage), path))
    feed(tree, tree.gitdir / "index", entries, clear=[path for *_, path in entries])


def _remove(root: Path, path: bytes) -> None:
    target = root / os.fsdecode(path)
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target, ignore_errors=True)
    else:
        target.unlink(missing_ok=True)
    for above in target.parents:
        if above == root or any(above.iterdir()):
            return
        above.rmdir()


def _write(tree: Tree, entry: TreeEntry) -> None:
    target = tree.root / os.fsdecode(entry.path)
    if os.path.lexists(target) and (target.is_symlink() or not target.is_dir()):
        target.unlink()
    elif target.is_dir() and entry.mode != GITLINK:
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.mode == GITLINK:
        target.mkdir(exist_ok=True)
        return
    content = tree.git("cat-file", "blob", entry.sha, timeout=BIG_TREE_SECONDS).raw
    if entry.mode == LINK:
        target.symlink_to(os.fsdecode(content))
        return
    target.write_bytes(content)
    if entry.mode == EXECUTABLE:
        target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
