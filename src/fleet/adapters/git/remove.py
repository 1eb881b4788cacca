"""Remove or park a worktree that fleet made, once all work that is only in it is kept.

The file `<root>.removing` beside it says how far that got, for the next call after a crash. The
steps: keep, move out of the way, look again, delete (or park), git's own record, the branch.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.kept.refs import keep
from fleet.adapters.git.old_branches import Deletion, OldBranch
from fleet.adapters.git.pool import is_parked
from fleet.adapters.git.repo import Repo
from fleet.adapters.git.tree import Tree, remove_scratch
from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.adapters.git.pool import Pool
    from fleet.adapters.git.tree import TreeState
    from fleet.domain.run import Workspace

WRITERS = 10.0  # seconds that a dying program may go on writing into what is being deleted


@dataclass(frozen=True, slots=True)
class RemovedWorktree:
    """What was done. `kept`: ids under which work was saved, by this call or one before it."""

    root: str
    branch: str
    kept: tuple[str, ...] = ()
    removed: bool = False  # its directory existed, and this call deleted it
    parked: bool = False  # it waits in the pool
    branch_deleted: bool = False
    said: tuple[str, ...] = ()


class Removing:
    """One removal. `folders`: the directories that hold our worktrees, two levels down."""

    def __init__(self, workspace: Workspace, label: str, folders: tuple[Path, ...]) -> None:
        self._workspace = workspace
        self._root = Path(workspace.root)
        self._label = label
        self._check_path(folders)
        self._note = self._root.with_name(f"{self._root.name}.removing")
        self._aside = self._root.with_name(f"{self._root.name}.removed")
        self._lock = -1
        self._kept: list[str] = []
        self._messages: list[str] = []
        self._saved: Mapping[str, bool] = {}
        self._removed = self._parked = False
        self.repo: Repo | None = None  # that its branch is in

    def take_away(
        self,
        repo: Repo | None,
        pool: Callable[[Repo], Pool],
        *,
        saved: Mapping[Path, Mapping[str, bool]],
        messages: Sequence[str] = (),
    ) -> None:
        """Remove or park the worktree; its note stays, and is locked, until `finish` or `close`.

        `repo`: its repository, in case nothing is left of the worktree that names it. `saved`:
        by repository, of some commits whether they are elsewhere, too.
        """
        self._messages += messages
        if not (self._exists() or self._note.exists() or repo):
            return
        self._take()
        note = self._read_note()
        path, tree = self._find(note)
        self.repo = repo = _repo_of(tree) if tree else _recorded_repo(note) or repo
        self._saved = saved.get(repo.common, {}) if repo else {}
        self._parked = path is not None and is_parked(path)
        if tree is not None and repo is not None and note.get("stage") != "deleting":
            path, self._parked = self._move_away(tree, pool(repo))
        if self._parked:
            return
        if path is not None:
            self._delete(path)
            self._removed = True
        if repo is not None:
            recorded = tree.gitdir if tree else Path(note.get("gitdir", ""))
            self._forget(repo, path, recorded)

    def branch(self) -> OldBranch | None:
        """The branch that may be deleted; None: there is none, or its repository is unknown."""
        workspace = self._workspace
        if self.repo is None or not workspace.branch:
            return None
        return OldBranch(workspace.branch, workspace.base, kept=bool(self._kept))

    def finish(self, deletion: Deletion) -> RemovedWorktree:
        branch = self._workspace.branch
        self._messages += [m for m in (deletion.messages.get(branch),) if m]
        if self._lock >= 0:
            remove_scratch(self._root)
            self._note.unlink(missing_ok=True)
        return RemovedWorktree(
            str(self._root), branch, tuple(self._kept), self._removed, self._parked,
            branch in deletion.deleted, tuple(self._messages),
        )  # fmt: skip

    def close(self) -> None:
        """Let the next call go on with what was not finished; without a note where nothing was begun."""
        if self._lock >= 0:
            if self._holds_note() and os.fstat(self._lock).st_size == 0:
                self._note.unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = -1

    def _check_path(self, folders: tuple[Path, ...]) -> None:
        """Refuse all but a worktree that fleet made, two levels below `folders`: no link or `..`."""
        root = self._root
        if not self._workspace.made or not self._workspace.root:
            raise Refused(f"{self._workspace.path} was not made by fleet, so it was not removed.")
        plain = root.is_absolute() and ".." not in root.parts and root.name not in {"", ".", ".."}
        real = root.parent.resolve() / root.name
        inside = any(
            real.parent.parent == folder.resolve() or root.parent.parent == folder
            for folder in folders
        )
        if not plain or not inside or root.is_symlink():
            raise Refused(
                f"{root} is outside the directories where fleet makes worktrees, so it was not removed.",
                fix="To remove it anyway: git worktree remove",
                code="not_ours",
            )

    def _exists(self) -> bool:
        return os.path.lexists(self._root) or os.path.lexists(self._aside)

    def _take(self) -> None:
        self._note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        while not self._holds_note():  # another process may finish, and remove it, as we open it
            self.close()
            self._lock = os.open(self._note, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(self._lock)
                self._lock = -1
                raise Unavailable(
                    f"Another fleet process is removing {self._root}.", fix="Try again in a moment."
                ) from error

    def _holds_note(self) -> bool:
        """Whether the file that we have locked is still the note."""
        if self._lock < 0:
            return False
        try:
            return os.path.samestat(os.fstat(self._lock), self._note.stat())
        except FileNotFoundError:
            return False

    def _read_note(self) -> dict[str, str]:
        with suppress(ValueError, OSError):
            note = json.loads(os.pread(self._lock, 1 << 16, 0))
            return {str(k): str(v) for k, v in note.items()}
        return {}

    def _write_note(self, stage: str, tree: Tree, path: Path) -> None:
        note = {
            "stage": stage, "gitdir": str(tree.gitdir), "place": str(path),
            "common": str(_common(tree.gitdir)),
        }  # fmt: skip
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, json.dumps(note).encode("utf-8", "surrogateescape"), 0)
        os.fsync(self._lock)

    def _find(self, note: dict[str, str]) -> tuple[Path | None, Tree | None]:
        """The current path of the worktree, and its tree if git knows it."""
        if (recorded := note.get("place")) and note.get("gitdir") and os.path.lexists(recorded):
            path = Path(recorded)
            return path, None if is_parked(path) else Tree(path, Path(note["gitdir"]))
        if not os.path.lexists(self._root):
            return None, None
        tree = Tree.at(self._root)
        if tree is None or not _is_worktree(tree):
            raise Refused(
                f"{self._root} is not a worktree that git knows, so it was not removed.",
                fix="git worktree repair, or look into it and remove it yourself.",
                code="not_ours",
            )
        return self._root, tree

    def _move_away(self, tree: Tree, pool: Pool) -> tuple[Path | None, bool]:
        """Keep the work, move the tree to a path that no program knows, and keep what came meanwhile."""
        look = tree.look()
        settled = not _is_busy(tree, look)
        self._keep(tree, look)
        room = None
        if tree.root == self._root and not tree.nested():  # nested trees record their own path
            with pool.repo.alone():
                room = pool.room() if pool.suits(tree) else None
                if room and room.parent.stat().st_dev != tree.root.parent.stat().st_dev:
                    room = None
                target = room or self._aside
                self._write_note("aside", tree, target)
                tree.root.rename(target)
            tree = Tree(target, tree.gitdir)
            later = tree.look()
            if not settled or later != look or _is_busy(tree, later):
                self._keep(tree, later)
        if room is not None and self._park(tree, pool):
            return tree.root, True
        self._write_note("deleting", tree, tree.root)
        return tree.root, False

    def _park(self, tree: Tree, pool: Pool) -> bool:
        """False when another process took the last room in the pool first."""
        try:
            with pool.repo.alone():
                if pool.room() is None:
                    return False
                pool.park(tree)
        except (FleetError, OSError) as error:
            self._messages.append(f"The worktree could not be kept for the next task: {error}")
            return False
        return True

    def _keep(self, tree: Tree, look: TreeState) -> None:
        kept = keep(self._workspace, self._label, seen=(tree, look), saved=self._saved)
        if kept is None:
            return
        if kept.missing:
            raise Refused(
                f"{tree.root} contains files that cannot be read, so it was not removed: "
                f"{', '.join(kept.missing[:5])}. The rest is kept as {kept.id}.",
                fix="Make them readable, or remove them yourself.",
                code="unreadable",
            )
        if kept.id not in self._kept:
            self._kept.append(kept.id)

    def _delete(self, path: Path) -> None:
        until = time.monotonic() + WRITERS
        while os.path.lexists(path):
            try:
                shutil.rmtree(path)
            except OSError as error:
                if error.errno == errno.EACCES:
                    _make_writable(path)
                if time.monotonic() > until:
                    raise Unavailable(
                        f"{path} cannot be removed: {error.strerror} ({error.filename}).",
                        fix="Stop the process that still writes there, then try again.",
                    ) from error
                time.sleep(0.05)

    def _forget(self, repo: Repo, moved_to: Path | None, gitdir: Path) -> None:
        """Remove git's own record of it; git itself would look at all other worktrees first."""
        paths = (self._root, moved_to or self._aside)
        with repo.alone():
            if gitdir.parent == repo.common / "worktrees" and _is_at(gitdir, paths):
                shutil.rmtree(gitdir)
                return
            for path in paths:
                words = ("worktree", "remove", "--force", "--force", str(path))
                if not os.path.lexists(path):
                    repo.git(*words, check=False)


def _common(gitdir: Path) -> Path:
    return gitdir.parent.parent.resolve()


def _repo_of(tree: Tree) -> Repo:
    """The repository by its git directory: the tree is about to move."""
    common = _common(tree.gitdir)
    return Repo(common, common)


def _recorded_repo(note: dict[str, str]) -> Repo | None:
    common = Path(note.get("common", ""))
    return Repo(common, common) if note.get("common") and common.is_dir() else None


def _is_worktree(tree: Tree) -> bool:
    """Whether git's record has it as a linked worktree at this path."""
    if tree.gitdir.parent.name != "worktrees":
        return False
    try:
        recorded = Path(os.fsdecode((tree.gitdir / "gitdir").read_bytes()).rstrip("\n"))
    except OSError:
        return False
    return recorded.parent.resolve() == tree.root.resolve()


def _is_busy(tree: Tree, look: TreeState) -> bool:
    """Whether it has work besides its commit, or may have."""
    return bool(look.changed or tree.in_progress() or tree.filled() or tree.nested())


def _is_at(gitdir: Path, paths: Sequence[Path]) -> bool:
    """Whether this is git's record of a worktree at one of these paths, which are gone."""
    with suppress(OSError):
        recorded = os.fsdecode((gitdir / "gitdir").read_bytes()).rstrip("\n")
        return any(recorded == f"{path}/.git" and not os.path.lexists(path) for path in paths)
    return False


def _make_writable(root: Path) -> None:
    """Make directories writable again that a program made read-only, as Go's module cache is."""
    for folder, folders, _ in os.walk(root):
        for name in (".", *folders):
            with suppress(OSError):
                path = Path(folder, name)
                if not path.is_symlink():
                    path.chmod(0o700)
