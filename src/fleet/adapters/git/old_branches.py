"""Delete the branches of removed worktrees, all at once, once their commits are elsewhere too.

Git reads every ref, and what each worktree has checked out, to delete one branch: with thousands of
both that is most of what a removal costs.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

from fleet.adapters.git.kept.refs import KEPT_REFS
from fleet.adapters.git.refs import HEADS
from fleet.adapters.git.repo import names_of, run_git, text_of
from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from fleet.adapters.git.repo import Repo

TRIES = 3  # while branches move between being read and being deleted


class DeleteBranches(Enum):
    """Which branches go with their worktrees; none goes with commits that are nowhere else."""

    UNUSED = "those that nothing came onto"
    MERGED = "those whose commits are in another branch, a tag or a remote"
    SAVED = "those whose commits are there, or kept"


class OldBranch(NamedTuple):
    """`base`: where it began. `kept`: work of its worktree was kept."""

    name: str
    base: str
    kept: bool


class Ref(NamedTuple):
    name: str
    commit: str
    used: bool  # checked out in a worktree


@dataclass(frozen=True, slots=True)
class Deletion:
    """What became of some branches. `messages`: by branch, why it stays though it was to go."""

    deleted: frozenset[str]
    messages: Mapping[str, str]


NO_DELETION = Deletion(frozenset(), {})


def elsewhere(tips: Mapping[str, str], only: Iterable[tuple[str, Sequence[str]]]) -> set[str]:
    """Those of the branches that may go together, since what stays has all of their commits.

    `only`: each commit that is in no other ref than these branches, and its parents. Of several
    branches at one such commit, the first stays.
    """
    parents = dict(only)
    inner = {parent for some in parents.values() for parent in some}
    staying: dict[str, str] = {}
    for name in sorted(tips):
        if (tip := tips[name]) in parents and tip not in inner:
            staying.setdefault(tip, name)
    return set(tips) - set(staying.values())


def saved_commits(repo: Repo, branches: Collection[str]) -> dict[str, bool]:
    """The tips of these branches, and whether each is elsewhere too when all go that may go together."""
    refs = {ref.name: ref for ref in _refs(repo)}
    tips = {name: refs[HEADS + name].commit for name in branches if HEADS + name in refs}
    going = {tips[name] for name in _may_go(repo, tips, refs.values())}
    return {tip: tip in going for tip in tips.values()}


def delete_branches(repo: Repo, old: Collection[OldBranch], which: DeleteBranches) -> Deletion:
    """Delete the branches in one transaction; one that has moved since it was looked at stays."""
    if not any(repo.has_branch(branch.name) for branch in old):
        return NO_DELETION
    messages: dict[str, str] = {}
    with repo.alone():
        for _ in range(TRIES):
            refs = {ref.name: ref for ref in _refs(repo, kept=which is not DeleteBranches.MERGED)}
            tips = dict(_wanted(old, which, refs))
            going = _may_go(repo, tips, refs.values())
            messages = _reasons(tips, going, which)
            used = _in_use(repo, refs.values())
            messages |= {n: f"{n} is checked out, so it stays." for n in going & used}
            going -= used
            done = _delete(repo, {name: tips[name] for name in sorted(going)})
            if not done:
                _forget_settings(repo, going)
                return Deletion(frozenset(going), messages)
        deleted = set[str]()
        for name in sorted(going):  # one of them is in the way of all
            if why := _delete(repo, {name: tips[name]}):
                messages[name] = f"{name} could not be deleted: {why}"
            else:
                deleted.add(name)
        _forget_settings(repo, deleted)
    return Deletion(frozenset(deleted), messages)


def _wanted(
    old: Collection[OldBranch], which: DeleteBranches, refs: Mapping[str, Ref]
) -> Iterator[tuple[str, str]]:
    for branch in old:
        ref = refs.get(HEADS + branch.name)
        if ref is None:
            continue
        is_unused = not branch.kept and ref.commit == branch.base
        if is_unused or which is not DeleteBranches.UNUSED:
            yield branch.name, ref.commit


def _reasons(
    tips: Mapping[str, str], going: Collection[str], which: DeleteBranches
) -> dict[str, str]:
    if which is DeleteBranches.MERGED:
        return {}
    stay = (name for name in tips if name not in going)
    return {name: f"{name} has commits that are nowhere else, so it stays." for name in stay}


def _may_go(repo: Repo, tips: Mapping[str, str], refs: Iterable[Ref]) -> set[str]:
    if not tips:
        return set()
    stay = {ref.commit for ref in refs if ref.name.removeprefix(HEADS) not in tips}
    lines = [*dict.fromkeys(tips.values()), *(f"^{commit}" for commit in sorted(stay))]
    stdin = "".join(f"{line}\n" for line in lines).encode()
    done = run_git(repo.top, "rev-list", "--parents", "--stdin", stdin=stdin)
    if done.status:
        raise Refused(f"git rev-list failed in {repo.top}: {done.words}")
    commits = (line.split() for line in done.out.splitlines())
    return elsewhere(tips, ((commit, parents) for commit, *parents in commits))


def _refs(repo: Repo, *, kept: bool = False) -> list[Ref]:
    """The refs that hold commits: symbolic ones only name another."""
    form = "%(refname)%00%(objectname)%00%(symref)%00%(if)%(worktreepath)%(then)used%(end)"
    kinds = (HEADS, "refs/remotes/", "refs/tags/", *([KEPT_REFS] if kept else []))
    refs = []
    for line in text_of(repo.git("for-each-ref", f"--format={form}", *kinds).raw).split("\n"):
        if not line:
            continue
        name, commit, symbolic, used = line.split("\0")
        if not symbolic:
            refs.append(Ref(name, commit, bool(used)))
    return refs


def _in_use(repo: Repo, refs: Iterable[Ref]) -> set[str]:
    """The branches that a worktree has checked out, or goes back to after a rebase or a bisection."""
    used = {ref.name.removeprefix(HEADS) for ref in refs if ref.used}
    folders = [repo.common]
    with suppress(FileNotFoundError):
        folders += (repo.common / "worktrees").iterdir()
    for folder in folders:
        for name in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
            with suppress(OSError):
                used.add(text_of((folder / name).read_bytes()).strip().removeprefix(HEADS))
    return used


def _delete(repo: Repo, tips: Mapping[str, str]) -> str:
    """Why git deleted none of them, or the empty string."""
    lines = "".join(f"delete {HEADS}{name} {tip}\n" for name, tip in tips.items())
    if not lines:
        return ""
    stdin = lines.encode("utf-8", "surrogateescape")
    done = run_git(repo.top, "update-ref", "--stdin", stdin=stdin)
    return done.words if done.status else ""


def _forget_settings(repo: Repo, branches: Collection[str]) -> None:
    """Git's settings of deleted branches, such as where they were pushed to."""
    if not branches:
        return
    words = ("config", "--local", "-z", "--name-only", "--get-regexp", r"^branch\.")
    keys = names_of(repo.git(*words, check=False).raw)
    sections = dict.fromkeys(key.rpartition(".")[0] for key in keys)
    for section in sections:
        if section.removeprefix("branch.") in branches:
            repo.git("config", "--local", "--remove-section", section, check=False)
