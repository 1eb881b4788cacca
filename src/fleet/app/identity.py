"""Who types a command, by the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet.domain.access import GRANTS, OWN, Actor, Role

if TYPE_CHECKING:
    from collections.abc import Mapping


def person(env: Mapping[str, str], team: str) -> Actor:
    """Whoever types. A program may say that it is less than that, never more."""
    name = env.get("CLAUDE_CODE_AGENT_NAME") or user(env)
    return Actor(name, lowered(Role.COORDINATOR, env.get("CLAUDE_CODE_AGENT_TYPE", "")), team)


def lowered(role: Role, wanted: str) -> Role:
    """`wanted`, unless that may do more than `role`. A kind of agent that is no role is a worker."""
    if not wanted:
        return role
    asked = Role(wanted) if wanted in list(Role) else Role.WORKER
    return asked if GRANTS[asked] - OWN <= GRANTS[role] else role


def user(env: Mapping[str, str]) -> str:
    if named := env.get("LOGNAME") or env.get("USER"):
        return named
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
