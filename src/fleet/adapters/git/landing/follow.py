"""A person's checkout follows its branch: files and branch go to a commit together.

Git does both in one command, but a git that is killed in between leaves some files at the new commit
and the branch at the old one. So what is about to happen is written down first, and the next one who
moves the branch finishes it, or takes it back. What a person changed there is never touched, nor a
file that git ignores there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import QUIET, names_of, run_git, text_of, unlock
from fleet.adapters.git.tree import BIG_TREE_SECONDS
from fleet.adapters.processes import run as process
from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from fleet.adapters.git.tree import Tree

# Git looks for what is in the way, and takes the lock of the index, before it begins.
NOTHING_DONE = ("Aborting", "index.lock': File exists")
RECORD = "fleet-move"  # in the checkout's own git directory, while it is being moved


class _BranchMove(NamedTuple):
    onto: str
    before: str
    after: str


def follow(checkout: Tree, onto: str, after: str, before: str) -> None:
    """Bring the checkout and its branch from one commit to a later one; raise `Refused`, or do it."""
    move = _BranchMove(onto, before, after)
    write_atomically(checkout.gitdir / RECORD, json.dumps(move._asdict()) + "\n")
    words = ("merge", "--ff-only", "--no-overwrite-ignore", "--quiet", after)
    done = run_git(checkout.root, *QUIET, *words, mark=_mark(checkout), timeout=BIG_TREE_SECONDS)
    if done.status < 0:  # killed
        raise Unavailable(f"git was killed while it updated {checkout.root}.")
    is_untouched = any(words in done.err for words in NOTHING_DONE)
    if done.status and not is_untouched and checkout.commit(f"refs/heads/{onto}") == before:
        _undo(checkout, move)
    (checkout.gitdir / RECORD).unlink(missing_ok=True)
    if done.status:
        raise Refused(
            f"{onto} is checked out in {checkout.root}, and git cannot update it: {done.words}",
            fix="Move the files that are in the way."
            if is_untouched
            else f"See what refuses it: git -C {checkout.root} merge --ff-only {after[:12]}",
            code="dirty",
        )


def finish_move(checkout: Tree) -> None:
    """Finish or take back a move that was cut off; nothing, when none was."""
    record = checkout.gitdir / RECORD
    try:
        move = _BranchMove(**json.loads(record.read_text()))
    except FileNotFoundError:
        return
    except (ValueError, TypeError):  # a disk that lost it: look at the files as they are
        record.unlink(missing_ok=True)
        return
    if not process.end_marked(_mark(checkout)):
        raise Unavailable(f"An earlier git is still at work in {checkout.root}.")
    for name in ("index.lock", "HEAD.lock", "ORIG_HEAD.lock", f"refs/heads/{move.onto}.lock"):
        words = ("rev-parse", "--path-format=absolute", "--git-path", name)
        unlock(Path(text_of(checkout.git(*words).raw).removesuffix("\n")))
    if checkout.commit(f"refs/heads/{move.onto}") == move.before:
        _finish(checkout, move)
    record.unlink(missing_ok=True)


def _mark(checkout: Tree) -> str:
    return f"fleet-move {checkout.root}"


def _finish(checkout: Tree, move: _BranchMove) -> None:
    with checkout.private_index() as mine:
        tree = checkout.git("write-tree", index=mine, check=False).out.strip()
        changed = checkout.git(
            "diff-files", "--quiet", "--ignore-submodules=all", index=mine, check=False
        )
        clean = changed.status == 0
    if clean and tree == checkout.git("rev-parse", f"{move.after}^{{tree}}").out.strip():
        update = ("update-ref", "-m", "fleet land", f"refs/heads/{move.onto}")
        checkout.git(*update, move.after, move.before)
    else:
        _take_back(checkout, move)


def _undo(checkout: Tree, move: _BranchMove) -> None:
    """Take back what git has done before something refused the rest, such as a hook or a full disk."""
    index = checkout.git("write-tree", check=False).out.strip()
    if index != checkout.git("rev-parse", f"{move.after}^{{tree}}").out.strip():
        _take_back(checkout, move)  # it ended in the midst of the files
        return
    checkout.git("read-tree", "-m", "-u", move.after, move.before)


def _take_back(checkout: Tree, move: _BranchMove) -> None:
    """Write the old form of each file that has the new one, or the beginning of it."""
    words = ("diff", "--name-only", "--no-renames", "-z", move.before, move.after)
    for name in names_of(checkout.git(*words).raw):
        if _is_ours(checkout, move, name):
            had = checkout.git("cat-file", "-e", f"{move.before}:{name}", check=False).status == 0
            if had:
                checkout.git("checkout", "--quiet", "--force", move.before, "--", name)
            else:
                (checkout.root / name).unlink(missing_ok=True)
                checkout.git("rm", "--quiet", "--cached", "--ignore-unmatch", "--", name)


def _is_ours(checkout: Tree, move: _BranchMove, name: str) -> bool:
    path = checkout.root / name
    if not os.path.lexists(path):
        return True
    if path.is_symlink() or not path.is_file():
        return False
    new = checkout.git("cat-file", "blob", f"{move.after}:{name}", check=False)
    if new.status == 0 and new.raw.startswith(path.read_bytes()):
        return True
    same = checkout.git("hash-object", f"--path={name}", str(path), check=False).out.strip()
    ids = [checkout.git("rev-parse", "--quiet", "--verify", f"{commit}:{name}", check=False)
           for commit in (move.before, move.after)]  # fmt: skip
    return same in {done.out.strip() for done in ids}
