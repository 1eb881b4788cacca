"""How deep agents may spawn agents, and which role a spawned agent has in its team."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.access import GRANTS, Role
from fleet.domain.errors import BadInput, Forbidden, Refused, nearest
from fleet.domain.fleet import RUN_ROLES

if TYPE_CHECKING:
    from fleet.domain.access import Actor
    from fleet.domain.task import Task

KINDS = {"lead": str(Role.TEAM_LEAD)}  # claude-fleet's names for some roles


def depth_of(by: Task | None, declared: int = 0) -> int:
    """The depth of a task that is added by the agent of the task `by`; 0 for a person (None).

    `declared` is the depth that the request names; it counts only if it is larger.
    """
    return max(declared, by.depth + 1 if by else 0)


def check_depth(depth: int, most: int) -> None:
    """Raise `Refused` beyond the allowed depth, so that agents cannot spawn agents for ever."""
    if depth > most:
        raise Refused(
            f"The agent would be at depth {depth}; agents may spawn agents down to depth {most}.",
            fix="Do the work yourself, or leave it to the agent that spawned you. "
            "The setting `max_depth` allows more.",
            code="too_deep",
        )


def run_role(name: str, actor: Actor) -> str:
    """The role of a spawned agent, which never may do more than the actor who asks for it."""
    role = KINDS.get(name, name)
    if not role:
        return ""
    if role not in RUN_ROLES:
        fix = nearest(role, RUN_ROLES) or f"Roles: {', '.join(RUN_ROLES)}."
        raise BadInput(f"'{name[:60]}' is not a role of an agent.", fix=fix)
    if not GRANTS[Role(role)] <= GRANTS[actor.role]:
        raise Forbidden(
            f"{actor.name} is a {actor.role}, so its agent cannot be a {role}.",
            fix="Ask a coordinator, or leave the role out.",
        )
    return role
