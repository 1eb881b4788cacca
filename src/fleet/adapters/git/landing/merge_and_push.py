"""Merging a branch into its base, and pushing it."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.diff.forecast import forecast
from fleet.adapters.git.landing.follow import finish_move, follow
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
from fleet.adapters.git.tree import Tree
from fleet.adapters.processes import run as process
from fleet.domain.data import dataclass
from fleet.domain.errors import NotFound, Refused, Unavailable
from fleet.ports import Ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.run import Workspace

NETWORK = 300.0  # seconds for a push, or for the forge to answer
FORECASTS = 20  # branches whose merge is tried at once


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
    address: str = ""  # of the remote, without a user name or a password


def ahead(project: str, branches: Sequence[str]) -> list[Ahead]:
    """The branches that HEAD does not contain, and where merging each would conflict."""
    repo = Repo.of(Path(project))
    refs = [f"refs/heads/{branch}" for branch in branches if is_name(branch)]
    how = ("for-each-ref", "--no-merged=HEAD", "--format=%(objectname) %(refname:lstrip=2)")
    pairs = (line.split(" ") for line in text_of(repo.git(*how, *refs).raw).splitlines())
    tips = {branch: tip for tip, branch in pairs if branch in branches} if refs else {}
    if not tips:
        return []
    head = repo.commit("HEAD")
    onto = _branch_of_head(repo) or head[:12]
    conflicts = forecast(repo, [(head, tip) for tip in list(tips.values())[:FORECASTS]])
    return [Ahead(branch, onto, conflicts.get((head, tip), ())) for branch, tip in tips.items()]


def merge(
    workspace: Workspace,
    project: str,
    onto: str = "",
    *,
    tip: str = "",
    check: Callable[[str, str], None] = lambda _tree, _onto: None,
) -> Merged:
    """Merge its branch into another: fast-forward if possible, else with a merge commit.

    `tip` is the commit that was recorded of it: the agent may have worked on another branch.
    `check` is given the tree that would come of it, and may raise.

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
        return _merge(repo, branch, target, tip, check)


def _merge(
    repo: Repo, branch: str, onto: str, recorded: str, check: Callable[[str, str], None]
) -> Merged:
    before, tip = repo.commit(f"refs/heads/{onto}"), repo.commit(f"refs/heads/{branch}")
    if recorded and repo.has_commit(recorded) and not repo.is_ancestor(recorded, tip):
        if not repo.is_ancestor(tip, recorded):
            raise Refused(
                f"{branch} does not have the work that was recorded of it ({recorded[:12]}).",
                fix=f"Merge that commit into {branch} in its worktree, then try again.",
                code="merge_conflict",
            )
        tip = recorded
    if repo.is_ancestor(tip, before):
        return Merged(branch, onto, before, before, nothing=True)
    checkout = checked_out(repo, onto)
    if checkout is not None:
        finish_move(checkout)
        refuse_dirty(checkout, onto)
    forward = repo.is_ancestor(before, tip)
    after = tip if forward else _merge_commit(repo, branch, onto, before, tip)
    check(repo.git("rev-parse", f"{after}^{{tree}}").out.strip(), onto)
    if checkout is not None:
        follow(checkout, onto, after, before)
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
    tree, files = merged_tree(repo, before, tip)
    if files:
        raise Refused(
            f"{branch} conflicts with {onto} in {', '.join(files[:10])}.",
            fix=f"Merge {onto} into {branch} in its worktree, resolve it there, then try again.",
            code="merge_conflict",
        )
    return commit_of(repo, tree, before, tip, f"Merge branch '{branch}' into {onto}")


def merged_tree(repo: Repo, ours: str, theirs: str) -> tuple[str, list[str]]:
    """The tree of the merge of two commits, and the files in which they conflict.

    In the checkout, whose .gitattributes say how files are merged, as they do for `git merge`.
    Where a file and a directory conflict, git adds the commit to the name of the file.
    """
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    done = run_git(repo.checkout, *QUIET, *words)
    tree, *files = names_of(done.raw) or [""]
    if done.status > 1 or (done.status and not files):
        raise Unavailable(f"git could not merge: {done.words}", fix="git 2.38 or newer is needed.")
    own = (name.removesuffix(f"~{ours}").removesuffix(f"~{theirs}") for name in files)
    return tree, list(dict.fromkeys(own)) if done.status else []


def commit_of(repo: Repo, tree: str, ours: str, theirs: str, message: str) -> str:
    """A merge commit with this tree, on no branch yet."""
    words = ("commit-tree", tree, "-p", ours, "-p", theirs, "-m", message)
    made = run_git(repo.top, *identity(repo.top), *words)
    if made.status:
        raise Refused(f"git could not commit the merge: {made.words}")
    return made.out.strip()


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


def refuse_dirty(checkout: Tree, onto: str) -> None:
    """A submodule at another commit is in nobody's way: git leaves it where it is."""
    words = ("status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all")
    changed = checkout.git(*words).raw
    if operations := checkout.in_progress():
        raise Refused(
            f"{onto} belongs to {checkout.root}, where {' and '.join(operations)} is in progress.",
            fix="Finish that there, or abort it.",
            code="dirty",
        )
    if changed:
        raise Refused(
            f"{onto} is checked out in {checkout.root}, which has changes of its own.",
            fix="Commit or stash them there.",
            code="dirty",
        )


def checked_out(repo: Repo, branch: str) -> Tree | None:
    """The directory where this branch is checked out; raise `Refused` when it does not exist.

    Likewise when there are several (`git worktree add --force`): git updates the files of one, and
    the next commit in another would take back what landed.
    """
    roots = _roots_of(repo, branch)
    trees = [tree for root in roots if (tree := Tree.at(root)) is not None]
    if roots and not trees:
        raise Refused(
            f"{branch} is checked out in {roots[0]}, which does not exist.",
            fix="git worktree prune, or bring it back.",
        )
    if len(trees) > 1:
        several = " and in ".join(str(tree.root) for tree in trees)
        raise Refused(
            f"{branch} is checked out in {several}, and git can bring only one of them along.",
            fix=f"Leave it in one: git -C {trees[-1].root} switch --detach",
            code="checked_out_twice",
        )
    return trees[0] if trees else None


def _roots_of(repo: Repo, branch: str) -> list[Path]:
    """The directories where it is checked out, or where a rebase of it is under way."""
    listed = text_of(repo.git("worktree", "list", "--porcelain", "-z").raw)
    roots = []
    for block in listed.split("\0\0"):
        facts = [line.partition(" ") for line in block.split("\0")]
        fields = {name: value for name, _, value in facts}
        if fields.get("branch") == f"refs/heads/{branch}":
            roots.append(Path(fields["worktree"]))
        elif "detached" in fields:
            tree = Tree.at(Path(fields["worktree"]))
            if tree is not None and _rebases(tree, branch):
                roots.append(tree.root)
    return roots


def _rebases(tree: Tree, branch: str) -> bool:
    """Whether a rebase there moves this branch when it ends, which it cannot if we moved it."""
    for kind in ("rebase-merge", "rebase-apply"):
        with suppress(OSError):
            if (tree.gitdir / kind / "head-name").read_text().strip() == f"refs/heads/{branch}":
                return True
    return False


def _head_branch(repo: Repo) -> str:
    if branch := _branch_of_head(repo):
        return branch
    raise Refused(f"{repo.top} has no branch checked out.", fix="Name the branch: --into BRANCH")


def _branch_of_head(repo: Repo) -> str:
    done = repo.git("symbolic-ref", "--short", "-q", "HEAD", check=False)
    return "" if done.status else text_of(done.raw).strip()


def push(workspace: Workspace, project: str, remote: str = "origin") -> Pushed:
    """`git push -u`, as the user would type it; the user's hooks run."""
    repo = Repo.of(Path(project))
    branch = workspace.branch
    if not repo.has_branch(branch):
        gone = f"There is no branch {branch} to push in {repo.top}."
        raise NotFound(
            gone, fix="Its work has landed, or its branch was deleted: git branch --list"
        )
    address = repo.git("remote", "get-url", "--push", remote, check=False)
    if address.status:
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
    nothing = done.out.startswith("=") or "\n=\t" in done.out
    return Pushed(branch, remote, nothing=nothing, address=public(address.out.strip()))


def public(address: str) -> str:
    """Without the user name and the password that may be in it."""
    return re.sub(r"(?<=://)[^/@]*@", "", address)
