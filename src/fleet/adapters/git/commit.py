"""The status of a worktree, and its changes as a commit, as the user would make it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import (
    GIT_LOCK_SECONDS,
    NO_HOOKS,
    QUIET,
    Repo,
    identity,
    is_locked,
    run_git,
)
from fleet.adapters.git.tree import BIG_TREE_SECONDS, FROM_INPUT, Tree
from fleet.domain.errors import Refused, Unavailable
from fleet.ports import ChangedFile, CommitRow, Tip, WorktreeRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.processes import run as process
    from fleet.domain.run import Workspace

HOOKS = 300.0  # seconds, the user's own hooks included
MAX_NAMED_FILES = 500  # in one reply
MERGE = "a merge"
KINDS = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "copied"}


def status(task: str, workspace: Workspace, project: str) -> WorktreeRow:
    tree = _tree(workspace)
    head = tree.commit("HEAD")
    base = _tip(Repo.of(Path(project))) or workspace.base
    behind, ahead = _apart(tree, base, head)
    files = _files(tree.changes())
    return WorktreeRow(
        task=task,
        branch=tree.head_branch(),
        path=str(tree.root),
        head=head,
        ahead=ahead,
        behind=behind,
        unpushed=_count(tree, "HEAD", "--not", workspace.base, "--remotes"),
        changes=len(files),
        files=files[:MAX_NAMED_FILES],
        in_progress=tuple(tree.in_progress()),
    )


def commit(
    task: str,
    workspace: Workspace,
    project: str,
    message: str,
    *,
    private: Sequence[str] = (),
    hooks: bool = True,
) -> CommitRow:
    """Commit everything on the worktree's own branch; the user's hooks run if `hooks`.

    `private`: files that fleet copied into the worktree, left out unless git tracks them.
    Raise `Refused`, and commit nothing, when nothing has changed, files are in conflict, the
    worktree is on another branch, or a hook fails.
    """
    tree, repo = _tree(workspace), Repo.of(Path(project))
    with repo.alone():
        _refuse(tree, workspace)
        how = () if hooks else NO_HOOKS
        _add_with_hooks(tree, how, left_out(tree, private))
        staged = tree.git("diff", "--cached", "--name-only", "-z").raw.count(b"\0")
        if not staged and not tree.in_progress():
            raise Refused(
                f"There is nothing to commit in {tree.root}.",
                fix="Change something there first.",
                code="nothing_to_commit",
            )
        done = _git_with_hooks(
            tree, *how, *identity(tree.root), "commit", "--quiet", f"--message={message}"
        )
        if done.status:
            raise Refused(
                f"git commit failed: {done.words}",
                fix=f"A hook may have refused it: look in {tree.root}, fix it, then try again.",
                code="not_committed",
            )
        return CommitRow(task, workspace.branch, tree.commit("HEAD"), staged)


def finish(workspace: Workspace, message: str, *, private: Sequence[str] = ()) -> Tip:
    """What the worktree is at. With a message, commit first what its agent left uncommitted.

    No hook of the user runs: the gate judges the work, and a hook that fails must not lose it.
    The task's branch follows when the agent made another branch of it.
    """
    tree = Tree.at(Path(workspace.root))
    if tree is None:
        return Tip()
    files = _uncommitted(tree, private)
    why = _reason_not_to_commit(tree, files)
    own = [f for f in files if not f.path.endswith("/")]  # a clone in it is a repository of its own
    if message and own and not why:
        with Repo.of(tree.root).alone():
            nested = [f":(exclude,literal){f.path}" for f in files if f.path.endswith("/")]
            out = [*left_out(tree, private), *nested]
            tree.add_all(leaving=out, timeout=BIG_TREE_SECONDS)
            tree.git(
                *identity(tree.root), "commit", "--quiet", "--no-gpg-sign", "--allow-empty",
                f"--message={message}", timeout=BIG_TREE_SECONDS,
            )  # fmt: skip
        files = _uncommitted(tree, private)
        why = why or (f"{files[0].path} is a repository of its own" if files else "")
    head, content, words = _newest(tree)
    _bring_branch(tree, workspace.branch, head)
    gathered = _gathered(tree) if message and words.strip() == message.strip() else 0
    if files:
        return Tip(head, len(files), why, gathered)
    return Tip(head, gathered=gathered, tree=content)


def _newest(tree: Tree) -> tuple[str, str, str]:
    """The commit that it is at, with its tree and its message, by one git; empty before the first."""
    done = tree.git("log", "-1", "--no-show-signature", "--format=%H%n%T%n%B", check=False)
    head, _, rest = (done.out if done.status == 0 else "").partition("\n")
    content, _, words = rest.partition("\n")
    return head, content, words


def _uncommitted(tree: Tree, private: Sequence[str]) -> list[ChangedFile]:
    copied = set(private)
    files = _files(tree.changes())
    return [f for f in files if not (f.change == "untracked" and f.path in copied)]


def _reason_not_to_commit(tree: Tree, files: Sequence[ChangedFile]) -> str:
    if files and tree.entries(unmerged=True):
        return "files are in conflict"
    others = [name for name in tree.in_progress() if name != MERGE]
    return f"{' and '.join(others)} is in progress" if others else ""


def _bring_branch(tree: Tree, branch: str, head: str) -> None:
    """Move the task's branch to the agent's commit, where that loses nothing of the branch."""
    ref = f"refs/heads/{branch}"
    before = tree.commit(ref)
    if not before or before == head or tree.head_branch() == branch:
        return
    if tree.git("merge-base", "--is-ancestor", before, head, check=False).status == 0:
        tree.git(
            "update-ref", "-m", "fleet: the agent's own branch", ref, head, before, check=False
        )


def _gathered(tree: Tree) -> int:
    """How many files the newest commit has: it is the one that we made, perhaps before a crash."""
    names = tree.git("diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "-z", "HEAD").raw
    return names.count(b"\0")


def work_commit(task: str, workspace: Workspace, *, private: Sequence[str]) -> tuple[str, bool]:
    """A commit of all that the worktree holds, and whether some of it was not committed yet.

    Nothing there changes: neither its files, nor its index, nor its branch.
    """
    tree = _tree(workspace)
    head = tree.commit("HEAD")
    if not tree.changes():
        return head, False
    with tree.private_index() as mine:
        tree.add_all(leaving=left_out(tree, private), index=mine, timeout=BIG_TREE_SECONDS)
        files = tree.git("write-tree", index=mine).out.strip()
    message = f"Work of {task} that was not committed when it was forked\n"
    made = (*identity(tree.root), "commit-tree", "-p", head, files)
    return tree.git(*made, stdin=message.encode()).out.strip(), True


def _tree(workspace: Workspace) -> Tree:
    if not workspace.made:
        raise Refused(
            f"The task works in {workspace.path} itself (--in-place), so it has no worktree.",
            fix="Use git there.",
            code="no_worktree",
        )
    tree = Tree.at(Path(workspace.root)) if workspace.root else None
    if tree is None:
        raise Refused(
            f"The worktree {workspace.root} no longer exists.",
            fix="`fleet kept` lists what was saved of it.",
            code="no_worktree",
        )
    return tree


def _refuse(tree: Tree, workspace: Workspace) -> None:
    if tree.entries(unmerged=True):
        raise Refused(
            f"There are conflicts in {tree.root}.",
            fix="Resolve them there, and `git add` the files, then try again.",
            code="conflicts",
        )
    others = [name for name in tree.in_progress() if name != MERGE]
    if others:
        raise Refused(
            f"There is {' and '.join(others)} in progress in {tree.root}.",
            fix="Finish or abort it there, then try again.",
            code="dirty",
        )
    if (at := tree.head_branch()) != workspace.branch:
        raise Refused(
            f"{tree.root} is on {at or 'no branch'}, not on {workspace.branch}.",
            fix=f"git -C {tree.root} switch {workspace.branch}",
            code="other_branch",
        )


def left_out(tree: Tree, private: Sequence[str]) -> list[str]:
    names = [name for name in private if name and not name.startswith("/")]
    if not names:
        return []
    listed = tree.git("ls-files", "-z", "--", *(f":(literal){name}" for name in names)).raw
    tracked = {part.decode("utf-8", "surrogateescape") for part in listed.split(b"\0")}
    return [f":(exclude,literal){name}" for name in names if name not in tracked]


def _add_with_hooks(tree: Tree, how: Sequence[str], leaving: Sequence[str]) -> None:
    with tree.excluding_nested(leaving) as specs:
        done = _git_with_hooks(tree, *how, "add", "--all", "--sparse", *FROM_INPUT, stdin=specs)
    if done.status:
        raise Refused(
            f"git add failed in {tree.root}: {done.words}",
            fix="Fix that in the worktree, then try again.",
        )


def _git_with_hooks(tree: Tree, *words: str, stdin: bytes = b"") -> process.Done:
    """Run git as the user would; try again while the agent's own git holds a lock."""
    until = time.monotonic() + GIT_LOCK_SECONDS
    timeout = BIG_TREE_SECONDS if stdin else HOOKS
    done = run_git(tree.root, *QUIET, *words, stdin=stdin, timeout=timeout)
    while done.status and is_locked(done) and time.monotonic() < until:
        time.sleep(0.05)
        done = run_git(tree.root, *QUIET, *words, stdin=stdin, timeout=timeout)
    if done.status and is_locked(done):
        raise Unavailable(
            f"Another git process is running in {tree.root}.",
            fix="Try again when it is done.",
            code="locked",
        )
    return done


def _tip(repo: Repo) -> str:
    """The commit that the project has checked out; empty: it has none yet."""
    done = repo.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False)
    return done.out.strip() if done.status == 0 else ""


def _apart(tree: Tree, one: str, other: str) -> tuple[int, int]:
    if not one or not other:
        return 0, 0
    done = tree.git("rev-list", "--left-right", "--count", f"{one}...{other}", check=False)
    left, _, right = done.out.strip().partition("\t")
    return (int(left), int(right)) if left.isdigit() and right.isdigit() else (0, 0)


def _count(tree: Tree, *words: str) -> int:
    count = tree.git("rev-list", "--count", *words, check=False).out.strip()
    return int(count) if count.isdigit() else 0


def _files(raw: bytes) -> tuple[ChangedFile, ...]:
    """The files of `git status --porcelain -z`, where a renamed file is followed by its old name."""
    parts = iter(raw.split(b"\0"))
    files = []
    for part in parts:
        if not part:
            continue
        code, path = part[:2].decode("ascii", "replace"), part[3:].decode("utf-8", "replace")
        if code[0] in "RC":
            next(parts, None)
        files.append(ChangedFile(path, _kind(code)))
    return tuple(files)


def _kind(code: str) -> str:
    if code == "??":
        return "untracked"
    if "U" in code or code in {"AA", "DD"}:
        return "conflict"
    return KINDS.get(code.strip()[:1], "modified")
