"""Remove worktrees side by side, and then their branches together: git reads all refs once."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.old_branches import NO_DELETION, delete_branches, saved_commits
from fleet.adapters.git.repo import Repo
from fleet.adapters.processes.threads import side_by_side
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.adapters.git.old_branches import DeleteBranches, Deletion, OldBranch
    from fleet.adapters.git.pool import Pool
    from fleet.adapters.git.remove import RemovedWorktree, Removing
    from fleet.domain.run import Workspace


class OldWorkspace(NamedTuple):
    """`project`: a directory of its repository, in case nothing is left of the worktree."""

    workspace: Workspace
    task: str
    project: str


class Steps(NamedTuple):
    """`tear_down` returns the messages of commands that failed."""

    removing: Callable[[OldWorkspace], Removing]
    tear_down: Callable[[Workspace, str], list[str]]
    pool: Callable[[Repo], Pool]


def remove_all(
    old: Sequence[OldWorkspace], steps: Steps, which: DeleteBranches
) -> list[RemovedWorktree | FleetError | OSError]:
    """What became of each. Until its branch has been seen to, its note is there for the next call."""
    repos = [_repo_of(one.project) for one in old]
    saved = _saved(old, repos)
    acts = [
        partial(_take_away, one, repo, steps, saved) for one, repo in zip(old, repos, strict=True)
    ]
    taken = side_by_side(acts)
    removings = [one for one in taken if not isinstance(one, Exception)]
    try:
        deletions = _delete_branches(removings, which)
        return [one if isinstance(one, Exception) else _finished(one, deletions) for one in taken]
    finally:
        for removing in removings:
            removing.close()


def _repo_of(project: str) -> Repo | None:
    with suppress(FleetError, OSError):
        return Repo.of(Path(project)) if project else None
    return None


def _saved(
    old: Sequence[OldWorkspace], repos: Sequence[Repo | None]
) -> dict[Path, Mapping[str, bool]]:
    """By repository, the tips of these branches, and whether they are elsewhere, too."""
    branches: dict[Repo, list[str]] = {}
    for one, repo in zip(old, repos, strict=True):
        if repo is not None:
            branches.setdefault(repo, []).append(one.workspace.branch)
    saved: dict[Path, Mapping[str, bool]] = {}
    for repo, names in branches.items():
        with suppress(FleetError, OSError):  # git is asked for each
            saved[repo.common] = saved_commits(repo, names)
    return saved


def _take_away(
    one: OldWorkspace, repo: Repo | None, steps: Steps, saved: Mapping[Path, Mapping[str, bool]]
) -> Removing | FleetError | OSError:
    removing = None
    try:
        removing = steps.removing(one)
        messages = steps.tear_down(one.workspace, one.task)
        removing.take_away(repo, steps.pool, saved=saved, messages=messages)
    except (FleetError, OSError) as error:
        if removing is not None:
            removing.close()
        return error
    return removing


def _delete_branches(
    removings: Sequence[Removing], which: DeleteBranches
) -> dict[Path, Deletion | FleetError | OSError]:
    """By repository."""
    old: dict[Path, list[OldBranch]] = {}
    for removing in removings:
        if removing.repo is not None and (branch := removing.branch()):
            old.setdefault(removing.repo.common, []).append(branch)
    done: dict[Path, Deletion | FleetError | OSError] = {}
    for common, branches in old.items():
        try:
            done[common] = delete_branches(Repo.at(common), branches, which)
        except (FleetError, OSError) as error:
            done[common] = error
    return done


def _finished(
    removing: Removing, deletions: Mapping[Path, Deletion | FleetError | OSError]
) -> RemovedWorktree | FleetError | OSError:
    repo = removing.repo
    deletion = deletions.get(repo.common, NO_DELETION) if repo else NO_DELETION
    return deletion if isinstance(deletion, Exception) else removing.finish(deletion)
