"""Used worktrees, kept for the next start: checking out only what differs is cheap.

A parked tree is a directory in the pool's folder with `<name>.parked` beside it. Without that file
no task may take it. All is done under the repository's lock.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import run_git
from fleet.adapters.git.tree import Tree
from fleet.base.files import write_atomically
from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError

if TYPE_CHECKING:
    from fleet.adapters.git.repo import Repo

PARKED = ".parked"


def is_parked(root: Path) -> bool:
    return root.with_name(f"{root.name}{PARKED}").exists()


@dataclass(frozen=True, slots=True)
class Pool:
    repo: Repo
    folder: Path
    size: int = 0
    clean: bool = False  # remove also what git ignores
    hooks: bool = True

    def room(self) -> Path | None:
        """The path for one more parked tree; None when the pool is full or off."""
        if len(self._records()) >= self.size:
            return None
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.folder / os.urandom(6).hex()

    @staticmethod
    def suits(tree: Tree) -> bool:
        """Nothing in it would surprise the next task: no submodule, no setting of its own."""
        own = ("modules", "config.worktree", "info/sparse-checkout", "locked")
        odd = any((tree.gitdir / name).exists() for name in own)
        busy = tree.in_progress() or tree.nested() or tree.filled() or tree.flagged()
        return not (odd or busy)

    def park(self, tree: Tree) -> None:
        """Offer a tree in the pool's folder, all of whose work is kept, to the next task."""
        _point_to(tree.gitdir, tree.root)
        tree.git("checkout", "--quiet", "--detach", "--force")
        tree.git("reset", "--quiet", "--hard")
        tree.git("clean", "-ffdq", *(["-x"] if self.clean else []))
        write_atomically(self._record(tree.root), json.dumps({"gitdir": str(tree.gitdir)}) + "\n")

    def take(self, root: Path, branch: str, base: str, mark: str) -> bool:
        """Make a parked tree the one at `root`, on a new branch at `base`; False: there is none."""
        if self.size <= 0:
            return False
        for record in self._records():
            parked_at = record.with_suffix("")
            tree = self._parked(record, parked_at)
            if tree is not None and self._move(tree, root, branch, base, mark):
                record.unlink(missing_ok=True)
                return True
        return False

    def trim(self, before: float, *, dry_run: bool = False) -> list[Path]:
        """Remove the trees parked before this time (seconds) and the oldest beyond the pool's size."""
        if not self.folder.is_dir():
            return []
        with self.repo.alone():
            newest = sorted(self._records(), key=_parked_at, reverse=True)
            spare = [r for n, r in enumerate(newest) if n >= self.size or _parked_at(r) <= before]
            return [r.with_suffix("") for r in spare if dry_run or self._drop(r)]

    def _drop(self, record: Path) -> bool:
        """False when the tree was changed since it was parked: then it belongs to no task, and stays."""
        root = record.with_suffix("")
        if self._parked(record, root) is None:
            return False
        self.repo.git("worktree", "remove", "--force", "--force", str(root))
        record.unlink(missing_ok=True)
        return True

    def _parked(self, record: Path, root: Path) -> Tree | None:
        """The parked tree; None, and its record removed, when it is gone or has changed files."""
        with suppress(FleetError, OSError, ValueError, KeyError):
            tree = Tree(root, Path(json.loads(record.read_text())["gitdir"]))
            recorded = os.fsdecode((tree.gitdir / "gitdir").read_bytes()).rstrip("\n")
            if recorded == str(root / ".git") and not tree.changes(all_files=False):
                return tree
        if not root.exists():  # a process took it and was killed: git still lists it here
            self.repo.git("worktree", "remove", "--force", "--force", str(root), check=False)
        record.unlink(missing_ok=True)
        return None

    def _move(self, tree: Tree, root: Path, branch: str, base: str, mark: str) -> bool:
        before = (tree.gitdir / "HEAD").read_text().strip()
        tree.root.rename(root)
        _point_to(tree.gitdir, root)
        try:
            moved = Tree(root, tree.gitdir)
            _switch(moved, before, branch, base, mark)
            if self.hooks:
                words = ("hook", "run", "--ignore-missing", "post-checkout", "--", before, base)
                run_git(moved.root, *words, "1", mark=mark)
        except (FleetError, OSError):
            self.repo.git("worktree", "remove", "--force", "--force", str(root), check=False)
            self.repo.git("branch", "-D", branch, check=False)
            return False
        return True

    def _records(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{PARKED}"))

    def _record(self, root: Path) -> Path:
        return root.with_name(f"{root.name}{PARKED}")


def _parked_at(record: Path) -> float:
    return record.stat().st_mtime


def _point_to(gitdir: Path, root: Path) -> None:
    """What `git worktree repair` does for a moved worktree, without starting a process."""
    mine = gitdir / f".gitdir.{os.getpid()}"
    mine.write_bytes(os.fsencode(f"{root}/.git\n"))
    mine.replace(gitdir / "gitdir")


def _switch(tree: Tree, before: str, branch: str, base: str, mark: str) -> None:
    """Do what `git checkout -b` does, without reading the files that are the same in both commits."""
    ref = f"refs/heads/{branch}"
    if before != base:
        tree.git("read-tree", "-m", "-u", before, base, mark=mark)
    tree.git("update-ref", ref, base, "", mark=mark)
    tree.git("symbolic-ref", "HEAD", ref, mark=mark)
    if before != base:
        ignoring = ("diff", "--quiet", before, base, "--", ".gitignore", "**/.gitignore")
        if tree.git(*ignoring, check=False).status:  # a file that was ignored may no longer be
            tree.git("clean", "-ffdq", mark=mark)
