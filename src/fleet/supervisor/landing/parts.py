"""What landing needs besides the supervisor's other ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet.domain.task import Task
    from fleet.ports import Branches, Forge, GateWorktrees


@dataclass(frozen=True, slots=True)
class LandingParts:
    branches: Callable[[str, str], Branches]  # of a repository, or of a remote of it
    gate_worktrees: Callable[[str], GateWorktrees]  # of a project
    gate_env: Callable[[str], Mapping[str, str]]  # of a project: the environment of its gates
    forge: Callable[[str, str], Forge]  # of a repository's remote
    is_here: Callable[[str], bool]  # whether this host has the repository
    clearing: Callable[[Task], Callable[[], None]]  # parks its worktree, deletes its branch
    is_uncleared: Callable[[Task], bool]  # whether it has a worktree here
    step_again: Callable[[], None]  # soon: there may be more to do at once
