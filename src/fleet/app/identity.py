"""The person who types a command, by the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet.domain.access import GRANTS, OWN, Actor, Role

if TYPE_CHECKING:
    from collections.abc import Mapping


def person(env: Mapping[str, str], team: str) -> Actor:
    """The person who types. A program may claim a lower role than theirs, never a higher one."""
    name = env.get("CLAUDE_CODE_AGENT_NAME") or user(env)
    return Actor(name, lowered(Role.COORDINATOR, env.get("CLAUDE_CODE_AGENT_TYPE", "")), team)


def lowered(role: Role, wanted: str) -> Role:
    """`wanted`, unless it may do more than `role`. An unknown kind of agent is a worker."""
    if not wanted:
        return role
    lower = Role(wanted) if wanted in list(Role) else Role.WORKER
    return lower if GRANTS[lower] - OWN <= GRANTS[role] else role


def user(env: Mapping[str, str]) -> str:
    if name := env.get("LOGNAME") or env.get("USER"):
        return name
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
