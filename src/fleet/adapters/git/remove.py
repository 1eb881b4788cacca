"""A worktree of ours, removed or parked, once all that is only in it is kept.

Beside it `<root>.removing` says how far it got, so that whoever comes after a crash goes on:
keep, move out of the way, look again, then delete (or park), then git's own record, then the branch.
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

from fleet.adapters.git.kept import is_kept, keep
from fleet.adapters.git.pool import is_parked
from fleet.adapters.git.repo import Repo, text_of
from fleet.adapters.git.tree import Tree
from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.adapters.git.pool import Pool
    from fleet.domain.run import Workspace

WRITERS = 10.0  # seconds that a dying program may go on writing into what is being deleted


@dataclass(frozen=True, slots=True)
class Removed:
    """What was done. `kept`: ids under which work was saved, by this call or one before it."""

    root: str
    branch: str
    kept: tuple[str, ...] = ()
    removed: bool = False  # its directory was there, and is not any more
    parked: bool = False  # it waits in the pool
    branch_deleted: bool = False
    said: tuple[str, ...] = ()


class Removing:
    """One removal. `places`: the directories that hold our worktrees, two levels down."""

    def __init__(self, workspace: Workspace, label: str, places: tuple[Path, ...]) -> None:
        self._workspace = workspace
        self._root = Path(workspace.root)
        self._label = label
        self._check_place(places)
        self._note = self._root.with_name(f"{self._root.name}.removing")
        self._aside = self._root.with_name(f"{self._root.name}.removed")
        self._lock = -1
        self._kept: list[str] = []
        self._said: list[str] = []

    def remove(
        self,
        repo: Repo | None,
        pool: Callable[[Repo], Pool],
        *,
        delete_branch: bool,
        said: Sequence[str] = (),
    ) -> Removed:
        """`repo`: where it belongs, in case nothing of it is left to say so."""
        self._said += said
        if not (self._here() or self._note.exists() or repo):
            return self._done()
        self._take()
        try:
            told = self._told()
            place, tree = self._find(told)
            repo = _repo_of(tree) if tree else _known(told) or repo
            parked = place is not None and is_parked(place)
            if tree is not None and repo is not None and told.get("stage") != "deleting":
                place, parked = self._put_aside(tree, pool(repo))
            removed = place is not None and not parked
            if place is not None and not parked:
                self._delete(place)
            if repo is not None and not parked:
                self._forget(repo, place)
            gone = bool(delete_branch and repo and self._delete_branch(repo))
            self._note.unlink(missing_ok=True)
            return self._done(removed=removed, parked=parked, branch_deleted=gone)
        finally:
            os.close(self._lock)

    def _check_place(self, places: tuple[Path, ...]) -> None:
        """Only what we made, where we make it: two levels below a place of ours, no link, no `..`."""
        root = self._root
        if not self._workspace.made or not self._workspace.root:
            raise Refused(f"{self._workspace.path} was not made by fleet, so it was not removed.")
        plain = root.is_absolute() and ".." not in root.parts and root.name not in {"", ".", ".."}
        real = root.parent.resolve() / root.name
        ours = any(
            real.parent.parent == place.resolve() or root.parent.parent == place for place in places
        )
        if not plain or not ours or root.is_symlink():
            raise Refused(
                f"{root} is outside the directories where fleet makes worktrees, so it was not removed.",
                fix="To remove it anyway: git worktree remove",
                code="not_ours",
            )

    def _here(self) -> bool:
        return os.path.lexists(self._root) or os.path.lexists(self._aside)

    def _take(self) -> None:
        self._note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = os.open(self._note, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise Unavailable(
                f"Another fleet process is removing {self._root}.", fix="Try again in a moment."
            ) from error

    def _told(self) -> dict[str, str]:
        with suppress(ValueError, OSError):
            said = json.loads(os.pread(self._lock, 1 << 16, 0))
            return {str(k): str(v) for k, v in said.items()}
        return {}

    def _tell(self, stage: str, tree: Tree, place: Path) -> None:
        said = {
            "stage": stage, "gitdir": str(tree.gitdir), "place": str(place),
            "common": str(_common(tree.gitdir)),
        }  # fmt: skip
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, json.dumps(said).encode("utf-8", "surrogateescape"), 0)
        os.fsync(self._lock)

    def _find(self, told: dict[str, str]) -> tuple[Path | None, Tree | None]:
        """Where it is by now, and its tree if git knows it."""
        if (aside := told.get("place")) and told.get("gitdir") and os.path.lexists(aside):
            place = Path(aside)
            return place, None if is_parked(place) else Tree(place, Path(told["gitdir"]))
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

    def _put_aside(self, tree: Tree, pool: Pool) -> tuple[Path | None, bool]:
        """Kept, moved to where no path leads, and looked at again: all that was written counts."""
        self._keep(tree)
        wanted = None
        if tree.root == self._root and not tree.nested():  # those know their place by its name
            with pool.repo.alone():
                wanted = pool.room() if pool.suits(tree) else None
                if wanted and wanted.parent.stat().st_dev != tree.root.parent.stat().st_dev:
                    wanted = None
                place = wanted or self._aside
                self._tell("aside", tree, place)
                tree.root.rename(place)
            tree = Tree(place, tree.gitdir)
            self._keep(tree)
        if wanted is not None and self._parked(tree, pool):
            return tree.root, True
        self._tell("deleting", tree, tree.root)
        return tree.root, False

    def _parked(self, tree: Tree, pool: Pool) -> bool:
        """Unless others, who saw the same room, were first."""
        try:
            with pool.repo.alone():
                if pool.room() is None:
                    return False
                pool.park(tree)
        except (FleetError, OSError) as error:
            self._said.append(f"It could not be parked: {error}")
            return False
        return True

    def _keep(self, tree: Tree) -> None:
        kept = keep(self._workspace, self._label, at=tree)
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

    def _delete(self, place: Path) -> None:
        until = time.monotonic() + WRITERS
        while os.path.lexists(place):
            try:
                shutil.rmtree(place)
            except OSError as error:
                if error.errno == errno.EACCES:
                    _open_up(place)
                if time.monotonic() > until:
                    raise Unavailable(
                        f"{place} cannot be removed: {error.strerror} ({error.filename}).",
                        fix="Stop the process that still writes there, then try again.",
                    ) from error
                time.sleep(0.05)

    def _forget(self, repo: Repo, place: Path | None) -> None:
        """Git's own record of it."""
        with repo.alone():
            for where in (self._root, place or self._aside):
                words = ("worktree", "remove", "--force", "--force", str(where))
                if not os.path.lexists(where):
                    repo.git(*words, check=False)

    def _delete_branch(self, repo: Repo) -> bool:
        """Only when its commits are somewhere else too."""
        branch = self._workspace.branch
        if not branch or not repo.has_branch(branch):
            return False
        with repo.alone():
            tip = repo.commit(f"refs/heads/{branch}")
            if not (is_saved(repo, tip, branch) or is_kept(repo, tip)):
                self._said.append(f"{branch} has commits that are nowhere else, so it stays.")
                return False
            done = repo.git("branch", "-D", branch, check=False)
        if done.status:
            self._said.append(f"{branch} could not be deleted: {done.words}")
        return done.status == 0

    def _done(
        self, *, removed: bool = False, parked: bool = False, branch_deleted: bool = False
    ) -> Removed:
        return Removed(
            str(self._root), self._workspace.branch, tuple(self._kept), removed, parked,
            branch_deleted, tuple(self._said),
        )  # fmt: skip


def is_saved(repo: Repo, commit: str, branch: str) -> bool:
    """Whether another branch, a tag or a remote has it."""
    words = ("for-each-ref", "--format=%(refname)", "--contains", commit)
    places = ("refs/heads", "refs/remotes", "refs/tags")
    found = text_of(repo.git(*words, *places, check=False).raw).split("\n")
    return any(ref and ref != f"refs/heads/{branch}" for ref in found)


def _common(gitdir: Path) -> Path:
    return gitdir.parent.parent.resolve()


def _repo_of(tree: Tree) -> Repo:
    """Asked from the repository itself: the tree is about to move."""
    common = _common(tree.gitdir)
    return Repo(common, common)


def _known(told: dict[str, str]) -> Repo | None:
    common = Path(told.get("common", ""))
    return Repo(common, common) if told.get("common") and common.is_dir() else None


def _is_worktree(tree: Tree) -> bool:
    """By git's own record: a linked one, whose record names this place."""
    if tree.gitdir.parent.name != "worktrees":
        return False
    try:
        named = Path(os.fsdecode((tree.gitdir / "gitdir").read_bytes()).rstrip("\n"))
    except OSError:
        return False
    return named.parent.resolve() == tree.root.resolve()


def _open_up(place: Path) -> None:
    """Directories that a program made unwritable, as Go's module cache is."""
    for folder, folders, _ in os.walk(place):
        for name in (".", *folders):
            with suppress(OSError):
                path = Path(folder, name)
                if not path.is_symlink():
                    path.chmod(0o700)
