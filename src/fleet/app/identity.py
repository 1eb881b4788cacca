"""The user who types a command, as the environment names them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet.domain.access import GRANTS, OWN, Actor, Role

if TYPE_CHECKING:
    from collections.abc import Mapping


def person(env: Mapping[str, str], team: str) -> Actor:
    """Return the user as an actor; the environment may lower their role, never raise it."""
    name = env.get("CLAUDE_CODE_AGENT_NAME") or user(env)
    return Actor(name, lowered(Role.COORDINATOR, env.get("CLAUDE_CODE_AGENT_TYPE", "")), team)


def lowered(role: Role, wanted: str) -> Role:
    """Return the role `wanted` if it may do no more than `role`; an unknown one is a worker."""
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
