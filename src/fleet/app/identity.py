"""Who somebody is by the environment, and the token that says so to a server of this home."""

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


def mint(key: bytes, actor: Actor, *, seconds: float) -> str:
    """A token like those of `fleet.server.tokens`, with nothing to load for it."""
    import hashlib
    import hmac
    import json
    import time

    now = int(time.time())
    claims = {
        "jti": os.urandom(8).hex(), "aud": "fleet", "iat": now, "exp": now + int(seconds),
        "sub": actor.name, "role": str(actor.role), "team": actor.team, "run": actor.run,
    }  # fmt: skip
    head, body = ({"alg": "HS256", "typ": "JWT"}, claims)
    signed = ".".join(_part(json.dumps(each).encode()) for each in (head, body))
    return f"{signed}.{_part(hmac.new(key, signed.encode(), hashlib.sha256).digest())}"


def _part(data: bytes) -> str:
    import base64

    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
