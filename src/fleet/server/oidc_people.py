"""People whom an OpenID Connect issuer knows: its tokens, and who they are in a team here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jwt

from fleet.domain.access import LEEWAY, Actor, Role
from fleet.domain.errors import BadInput, Forbidden, Unavailable
from fleet.operations.shared.entries import a_person
from fleet.operations.team.enrolments import RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.app.token_keys import IssuerKeys
    from fleet.config.settings import OidcSettings

ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)  # none that signs with what verifies
STRONGEST = (
    Role.COORDINATOR, Role.TEAM_LEAD, Role.MERGER, Role.WORKER, Role.MONITOR, Role.NOTIFIER,
)  # fmt: skip
FIX = "Log in again with your identity provider, and set FLEET_TOKEN to the new token."


class People:
    """Reads the issuer's tokens; the settings say what their claims mean here."""

    def __init__(self, settings: OidcSettings, keys: IssuerKeys) -> None:
        self._settings, self._keys = settings, keys

    def has_key(self, key_id: str) -> bool:
        return self._keys.find(key_id) is not None

    def read(self, token: str, header: dict[str, Any]) -> tuple[dict[str, Any], Actor, str]:
        """Return the claims, the actor and the key's id; raise `Forbidden` for no role or team."""
        key = self._key(str(header.get("kid", "")))
        algorithm = str(header.get("alg"))
        if algorithm not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError(algorithm)
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=self._settings.audience,
            issuer=self._settings.issuer,
            options={"require": ["exp", "iat", "sub", "aud", "iss"]},
            leeway=LEEWAY,
        )
        return claims, person_of(claims, self._settings), str(key.key_id)

    def _key(self, key_id: str) -> jwt.PyJWK:
        key = self._keys.find(key_id)
        if key is not None:
            return key
        if self._keys.is_fetching:
            raise Unavailable(
                f"The keys of {self._settings.issuer} are being fetched.",
                fix="Try again in a second.",
                code="no_keys_yet",
            )
        problem = f" ({self._keys.problem})" if self._keys.problem else ""
        raise Forbidden(
            f"{self._settings.issuer} has no key {key_id[:60]}{problem}.",
            fix=FIX,
            code="unknown_key",
        )


def person_of(claims: dict[str, Any], settings: OidcSettings) -> Actor:
    """Return the actor of these claims; raise `Forbidden` when they give no role or no team."""
    name = _name(claims, settings.name_claim)
    roles = set(_mapped(claims.get(settings.role_claim), settings.roles))
    teams = _mapped(claims.get(settings.team_claim), settings.teams)
    role = next((role for role in STRONGEST if str(role) in roles), None)
    if role is None or not teams:
        what = "role" if role is None else "team"
        raise Forbidden(
            f"{name} has no {what} on this server.",
            fix=f"Ask its operator to map one of your groups in `server.oidc.{what}s`.",
            code="no_role",
        )
    return Actor(name, role, teams[0], remote=True)


def _name(claims: dict[str, Any], claim: str) -> str:
    name = claims.get(claim)
    unproven = claim == "email" and claims.get("email_verified") is False
    if not isinstance(name, str) or name in RESERVED or unproven:
        raise Forbidden(f"The token has no name in its claim `{claim}`.", fix=FIX, code="no_role")
    try:
        return a_person(name)
    except BadInput as error:
        raise Forbidden(error.message, fix=FIX, code="no_role") from None


def _mapped(values: Any, pairs: Iterable[str]) -> list[str]:
    """Return the meanings of a claim's values by the `VALUE=MEANING` pairs, in the pairs' order."""
    have = {values} if isinstance(values, str) else set(map(str, values or ()))
    split = (pair.rpartition("=") for pair in pairs)
    return [meaning.strip() for value, _, meaning in split if value.strip() in have]
