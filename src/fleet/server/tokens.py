"""Tokens: signed claims of who somebody is. The key outlives the server."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import TYPE_CHECKING, Any

import jwt

from fleet.domain.access import AUDIENCE, Actor, Role, claims_of
from fleet.domain.data import dataclass
from fleet.domain.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Callable

ALGORITHM = "HS256"
FIX = "`fleet token create` makes one."
NEEDED = ["exp", "jti", "sub", "role", "team"]
KNOWN = 4096  # tokens whose signature need not be looked at again


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token says. `id` is what it can be revoked by; `until` is in seconds since 1970."""

    id: str
    actor: Actor
    until: float


class Tokens:
    """`is_revoked` is asked for every request: somebody may have been sent away since."""

    def __init__(self, key: bytes, *, is_revoked: Callable[[str], bool] | None = None) -> None:
        self._key = key
        self._is_revoked = is_revoked or (lambda _: False)
        self._is_over: Callable[[str], bool] = lambda _: False
        self._seen: dict[bytes, Grant] = {}

    def revoked_by(self, is_revoked: Callable[[str], bool]) -> None:
        self._is_revoked = is_revoked

    def ended_by(self, is_over: Callable[[str], bool]) -> None:
        """Asked of the run that a token is bound to: it ends with it."""
        self._is_over = is_over

    def mint(self, actor: Actor, *, seconds: float, now: float | None = None) -> tuple[str, Grant]:
        at = time.time() if now is None else now
        grant = Grant(secrets.token_hex(8), actor, at + seconds)
        claims = claims_of(actor, grant.id, at=int(at), until=int(grant.until))
        return jwt.encode(claims, self._key, algorithm=ALGORITHM), grant

    def check(self, token: str) -> Grant:
        """Raise `Forbidden` unless it is one of ours, is not over, and was not revoked.

        One that is bound to a run is over when that run is.
        """
        digest = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        grant = self._seen.get(digest)
        if grant is None:
            grant = self._read(token)
            if len(self._seen) >= KNOWN:
                self._seen.clear()
            self._seen[digest] = grant
        if grant.until < time.time():
            raise Forbidden("The token has expired.", fix=FIX, code="expired_token")
        if self._is_revoked(grant.id):
            raise Forbidden("The token has been revoked.", fix=FIX, code="revoked_token")
        if grant.actor.run and self._is_over(grant.actor.run):
            raise Forbidden(
                f"{grant.actor.run} has ended, so its token is no longer valid.",
                fix=FIX,
                code="stale_run",
            )
        return grant

    def _read(self, token: str) -> Grant:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=[ALGORITHM],
                audience=AUDIENCE,
                options={"require": NEEDED},
            )
            actor = Actor(
                str(claims["sub"]),
                Role(claims["role"]),
                str(claims["team"]),
                str(claims.get("run", "")),
            )
            return Grant(str(claims["jti"]), actor, float(claims["exp"]))
        except jwt.ExpiredSignatureError:
            raise Forbidden("The token has expired.", fix=FIX, code="expired_token") from None
        except (jwt.PyJWTError, ValueError, KeyError, TypeError):
            raise Forbidden(
                "The token was not issued by this server.", fix=FIX, code="bad_token"
            ) from None
