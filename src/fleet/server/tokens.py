"""Tokens: signed claims of who the caller is. The keys outlive the server."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import jwt

from fleet.domain.access import AUDIENCE, LEEWAY, Actor, Role, keys_of
from fleet.domain.data import dataclass
from fleet.domain.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.app.token_keys import KeyRing, SigningKey
    from fleet.server.oidc_people import People

ALGORITHM = "HS256"
FIX = "`fleet token create` makes one."
NEEDED = ["exp", "jti", "sub", "role", "team"]
OUTSIDE = "oidc:"  # prefix of the ids of an OIDC issuer's keys and people
KNOWN = 4096  # verified tokens that are remembered


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """What a verified token grants. `id` is used to revoke it.

    `at`: when it was made, in microseconds; `until`: when it expires, in seconds since 1970. `key`:
    the id of its signing key, whose retirement ends it; `ended_by`: the keys of revocations that
    would end it. `host`: the host whose supervisor may connect with it. `budget`: the name of the
    request rate that it shares with other tokens of its holder; empty: it has its own.
    """

    id: str
    actor: Actor
    until: float
    key: str
    at: int = 0
    ended_by: tuple[str, ...] = ()
    host: str = ""
    budget: str = ""


class TokenCheck:
    """Verifies tokens. `is_revoked` is called for every request, as revocations count at once."""

    def __init__(
        self,
        keys: KeyRing,
        is_revoked: Callable[[TokenGrant], bool] = lambda _: False,
        people: People | None = None,
    ) -> None:
        self._keys, self._is_revoked, self._people = keys, is_revoked, people
        self._is_over: Callable[[str], bool] = lambda _: False
        self._seen: dict[bytes, TokenGrant] = {}

    def ended_by(self, is_over: Callable[[str], bool]) -> None:
        """Set the function that tells whether a run has ended; a run's tokens end with it."""
        self._is_over = is_over

    def check(self, token: str) -> TokenGrant:
        """Return what a token grants; raise `Forbidden` if it is forged, expired or revoked.

        A token that is bound to a run ends with the run.
        """
        digest = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        grant = self._seen.get(digest)
        if grant is None:
            grant = self._read(token)
            if len(self._seen) >= KNOWN:
                self._seen.clear()
            self._seen[digest] = grant
        if not self._has_key(grant.key):
            _no_key(grant.key)
        if grant.until + LEEWAY < time.time():
            raise Forbidden("The token has expired.", fix=FIX, code="expired_token")
        if self._is_revoked(grant):
            raise Forbidden("The token has been revoked.", fix=FIX, code="revoked_token")
        if grant.actor.run and self._is_over(grant.actor.run):
            raise Forbidden(
                f"{grant.actor.run} has ended, so its token is no longer valid.",
                fix=FIX,
                code="stale_run",
            )
        return grant

    def _has_key(self, key: str) -> bool:
        if key.startswith(OUTSIDE) and self._people is not None:
            return self._people.has_key(key.removeprefix(OUTSIDE))
        return self._keys.find(key) is not None

    def _read(self, token: str) -> TokenGrant:
        try:
            header = jwt.get_unverified_header(token)
            if self._people is not None and header.get("alg") != ALGORITHM:
                return _granted(*self._people.read(token, header))
            claims, key = self._decoded(token, header.get("kid"))
            token_id, mark = str(claims["jti"]), str(claims.get("enrolment", ""))
            actor = Actor(
                str(claims["sub"]),
                Role(claims["role"]),
                str(claims["team"]),
                str(claims.get("run", "")),
                remote=True,
                token=token_id,
                until=int(claims["exp"]) * 1_000_000,
            )
            at = round(float(claims.get("iat", 0)) * 1_000_000)
            session = str(claims.get("session", ""))
            keys = keys_of(token_id, actor.name, actor.team, mark, session)
            host = str(claims.get("host", ""))
            until, budget = float(claims["exp"]), _budget(actor, session, mark)
            return TokenGrant(token_id, actor, until, key, at, keys, host, budget)
        except jwt.ExpiredSignatureError:
            raise Forbidden("The token has expired.", fix=FIX, code="expired_token") from None
        except (jwt.PyJWTError, ValueError, KeyError, TypeError):
            raise Forbidden(
                "The token was not issued by this server.", fix=FIX, code="bad_token"
            ) from None

    def _decoded(self, token: str, named: str | None) -> tuple[dict[str, Any], str]:
        """Return the claims and the id of their key. `named`: the key id in the token's header."""
        if named is None:  # made by a version whose tokens did not name their key
            return self._by_any(token)
        key = self._keys.find(named)
        return (_claims(token, key), key.id) if key else _no_key(named)

    def _by_any(self, token: str) -> tuple[dict[str, Any], str]:
        *keys, last = self._keys.all()
        for key in keys:
            try:
                return _claims(token, key), key.id
            except jwt.InvalidSignatureError:
                continue
        return _claims(token, last), last.id


def _budget(actor: Actor, session: str, enrolment: str) -> str:
    """Return the request budget that all tokens of one session or enrolment code share."""
    if enrolment:
        return f"enrolment {enrolment} {actor.name}"
    return f"session {session}" if session else ""


def _granted(claims: dict[str, Any], actor: Actor, key: str) -> TokenGrant:
    """Return what an OIDC issuer's token grants.

    All tokens of one person share an id, so they share a request rate and are revoked together.
    """
    token_id = f"{OUTSIDE}{claims['sub']}"
    at = round(float(claims["iat"]) * 1_000_000)
    ended_by = keys_of(token_id, actor.name, actor.team)
    actor = replace(actor, token=token_id, until=int(claims["exp"]) * 1_000_000)
    return TokenGrant(token_id, actor, float(claims["exp"]), f"{OUTSIDE}{key}", at, ended_by)


def _claims(token: str, key: SigningKey) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(
        token,
        key.value,
        algorithms=[ALGORITHM],
        audience=AUDIENCE,
        options={"require": NEEDED},
        leeway=LEEWAY,
    )
    return claims


def _no_key(named: str) -> NoReturn:
    raise Forbidden(
        f"The token was signed with the key {named[:20]}, which this server does not have: "
        "another server signed it, or the key has been retired.",
        fix="Ask for a new one: `fleet token create`, where this server runs.",
        code="unknown_key",
    )
