"""What a branch changed, merging it into its base, and pushing it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import (
    QUIET,
    Repo,
    git_env,
    identity,
    is_name,
    names_of,
    run_git,
    text_of,
)
from fleet.adapters.git.tree import BIG_TREE_SECONDS, Tree
from fleet.adapters.processes import run as process
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from fleet.domain.run import Workspace

NETWORK = 300.0  # seconds for a push, or for the forge to answer


@dataclass(frozen=True, slots=True)
class Merged:
    branch: str
    onto: str
    commit: str  # what `onto` is at now
    before: str
    fast_forward: bool = False
    nothing: bool = False  # `onto` had it already
    checkout: str = ""  # the directory where `onto` is checked out, updated too


@dataclass(frozen=True, slots=True)
class Pushed:
    branch: str
    remote: str
    url: str = ""  # of the pull request
    nothing: bool = False  # the remote had it all already


def diff(workspace: Workspace, project: str = "", *, stat: bool = False) -> str:
    """The changes since the base, uncommitted and untracked files included.

    Without its worktree: the changes on its branch.
    """
    how = ("diff", "--no-color", "--no-ext-diff", *(["--stat=100"] if stat else []))
    tree = Tree.at(Path(workspace.root)) if workspace.root else None
    if tree is None:
        repo = Repo.of(Path(project or workspace.path))
        if not workspace.branch or not repo.has_branch(workspace.branch):
            raise NotFound(
                f"Neither the worktree nor the branch {workspace.branch} exists any more.",
                fix="`fleet kept` lists what was saved of it.",
            )
        return repo.git(*how, f"{workspace.base}...{workspace.branch}").out
    start = _began(tree, workspace.base)
    with tree.private_index() as mine:
        tree.git(
            "add", "--all", "--ignore-errors", index=mine, check=False, timeout=BIG_TREE_SECONDS
        )
        return tree.git(*how, "--cached", start, index=mine, timeout=BIG_TREE_SECONDS).out


def _began(tree: Tree, base: str) -> str:
    """Where the work departs from its base, also after a rebase or a merge of the base."""
    done = tree.git("merge-base", base, "HEAD", check=False)
    return done.out.strip() or base


def merge(workspace: Workspace, project: str, onto: str = "") -> Merged:
    """Merge its branch into another: fast-forward if possible, else with a merge commit.

    Raise `Refused`, and change nothing, when the worktree has uncommitted work, the checkout of
    `onto` is not clean, or the branches conflict.
    """
    repo = Repo.of(Path(project))
    branch = workspace.branch
    if not branch or not repo.has_branch(branch):
        raise NotFound(f"There is no branch {branch or '(none)'} to merge in {repo.top}.")
    _refuse_uncommitted(workspace)
    with repo.alone():
        target = onto or _head_branch(repo)
        if target == branch:
            raise Refused(
                f"{branch} cannot be merged into itself.", fix="Name another: --into BRANCH"
            )
        if not repo.has_branch(target):
            raise NotFound(
                f"There is no branch '{target}' in {repo.top}.",
                fix=f"Make it first (git branch {target}), or name another: --into BRANCH",
            )
        return _merge(repo, branch, target)


def _merge(repo: Repo, branch: str, onto: str) -> Merged:
    before, tip = repo.commit(f"refs/heads/{onto}"), repo.commit(f"refs/heads/{branch}")
    if _has(repo, before, tip):
        return Merged(branch, onto, before, before, nothing=True)
    checkout = _checked_out(repo, onto)
    if checkout is not None:
        _refuse_dirty(checkout, onto)
    forward = _has(repo, tip, before)
    after = tip if forward else _merge_commit(repo, branch, onto, before, tip)
    if checkout is not None:
        _update_checkout(checkout, after, onto)
    else:
        words = ("update-ref", "-m", f"merge {branch}", f"refs/heads/{onto}", after, before)
        done = repo.git(*words, check=False)
        if done.status:
            raise Refused(
                f"{onto} moved during the merge: {done.words}", fix="Try again.", code="conflict"
            )
    path = str(checkout.root) if checkout else ""
    return Merged(branch, onto, after, before, fast_forward=forward, checkout=path)


def _merge_commit(repo: Repo, branch: str, onto: str, before: str, tip: str) -> str:
    """Made in the object store alone: no checkout is touched."""
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", before, tip)
    done = run_git(repo.top, *QUIET, *words)
    tree, *rest = names_of(done.raw) or [""]
    if done.status == 1:
        files = list(dict.fromkeys(rest))
        raise Refused(
            f"{branch} conflicts with {onto} in {', '.join(files[:10])}.",
            fix=f"Merge {onto} into {branch} in its worktree, resolve it there, then try again.",
            code="merge_conflict",
        )
    if done.status:
        raise Unavailable(f"git could not merge: {done.words}", fix="git 2.38 or newer is needed.")
    made = run_git(
        repo.top, *identity(repo.top), "commit-tree", tree, "-p", before, "-p", tip,
        "-m", f"Merge branch '{branch}' into {onto}",
    )  # fmt: skip
    if made.status:
        raise Refused(f"git could not commit the merge: {made.words}")
    return made.out.strip()


def _update_checkout(checkout: Tree, after: str, onto: str) -> None:
    """Where the branch is checked out, git updates branch and files together, or neither."""
    done = run_git(checkout.root, *QUIET, "merge", "--ff-only", "--quiet", after)
    if done.status:
        raise Refused(
            f"{onto} is checked out in {checkout.root}, and git cannot update it: {done.words}",
            fix="Move the files that are in the way, then try again.",
            code="dirty",
        )


def _refuse_uncommitted(workspace: Workspace) -> None:
    tree = Tree.at(Path(workspace.root)) if workspace.root else None
    if tree is None:
        return
    if operations := tree.in_progress():
        raise Refused(
            f"There is {' and '.join(operations)} in progress in {tree.root}.", code="dirty"
        )
    if tree.changes():
        raise Refused(
            f"{tree.root} has uncommitted work.",
            fix=f"Commit it there, or `fleet worktree commit {workspace.branch} -m MESSAGE`, then merge again.",
            code="dirty",
        )


def _refuse_dirty(checkout: Tree, onto: str) -> None:
    changed = checkout.git("status", "--porcelain", "-z", "--untracked-files=no").raw
    if changed or checkout.in_progress():
        raise Refused(
            f"{onto} is checked out in {checkout.root}, which has changes of its own.",
            fix="Commit or stash them there, then merge again.",
            code="dirty",
        )


def _checked_out(repo: Repo, branch: str) -> Tree | None:
    """Where this branch is checked out; raise `Refused` when that directory does not exist."""
    listed = text_of(repo.git("worktree", "list", "--porcelain", "-z").raw)
    for block in listed.split("\0\0"):
        facts = [line.partition(" ") for line in block.split("\0")]
        fields = {name: value for name, _, value in facts}
        if fields.get("branch") == f"refs/heads/{branch}":
            tree = Tree.at(Path(fields["worktree"]))
            if tree is None:
                raise Refused(
                    f"{branch} is checked out in {fields['worktree']}, which does not exist.",
                    fix="git worktree prune, or bring it back.",
                )
            return tree
    return None


def _head_branch(repo: Repo) -> str:
    done = repo.git("symbolic-ref", "--quiet", "--short", "HEAD", check=False)
    if done.status:
        raise Refused(
            f"{repo.top} has no branch checked out.", fix="Name the branch: --into BRANCH"
        )
    return text_of(done.raw).strip()


def _has(repo: Repo, commit: str, ancestor: str) -> bool:
    return repo.git("merge-base", "--is-ancestor", ancestor, commit, check=False).status == 0


def push(workspace: Workspace, project: str, remote: str = "origin") -> Pushed:
    """`git push -u`, as the user would type it; the user's hooks run."""
    repo = Repo.of(Path(project))
    branch = workspace.branch
    if not repo.has_branch(branch):
        raise NotFound(f"There is no branch {branch} to push in {repo.top}.")
    if repo.git("remote", "get-url", remote, check=False).status:
        raise Refused(
            f"{repo.top} has no remote '{remote}'.",
            fix=f"git remote add {remote} URL",
            code="no_remote",
        )
    argv = ["git", "push", "--porcelain", remote, f"refs/heads/{branch}:refs/heads/{branch}"]
    done = process.run(argv, repo.top, env=git_env(), timeout=NETWORK)
    if done.status and "[rejected]" in done.out:
        raise Refused(
            f"{remote} has work on {branch} that is not here, so git did not push.",
            fix=f"Merge {remote}/{branch} into it in its worktree, then push again.",
            code="rejected",
        )
    if done.status:
        raise Unavailable(f"git push failed: {done.words}", fix=f"git push -u {remote} {branch}")
    # Several `push -u` at once leave some branches without an upstream, though git exits with 0.
    with repo.alone():
        repo.git("config", f"branch.{branch}.remote", remote)
        repo.git("config", f"branch.{branch}.merge", f"refs/heads/{branch}")
    return Pushed(branch, remote, nothing=done.out.startswith("=") or "\n=\t" in done.out)


def open_pull_request(
    workspace: Workspace, project: str, title: str, body: str = "", base: str = ""
) -> Pushed:
    """Push, then run `gh pr create`; `base`: the branch to merge into."""
    if base and not is_name(base):
        raise BadInput(f"'{base[:80]}' is not the name of a branch.", fix="Try main.")
    if shutil.which("gh") is None:
        raise Unavailable(
            "gh, GitHub's command line, is not installed.",
            fix="Install it (https://cli.github.com), or push and open the page yourself.",
        )
    pushed = push(workspace, project)
    argv = ["gh", "pr", "create", f"--head={workspace.branch}", f"--title={title}"]
    argv += [f"--body={body}", *([f"--base={base}"] if base else [])]
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    done = process.run(argv, Repo.of(Path(project)).top, env=env, timeout=NETWORK)
    if done.status:
        raise Unavailable(f"gh pr create failed: {done.words}", fix="gh auth status")
    words = done.out.split()
    return Pushed(pushed.branch, pushed.remote, words[-1] if words else "")
