"""The keys that sign tokens, and the tokens that this home signs for itself."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.key_ring import KeyRing, SigningKey
from fleet.adapters.home.revoked_file import RevokedFile
from fleet.app.server_process import serving
from fleet.domain.access import claims_of
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleet.adapters.oidc_keys import IssuerKeys as IssuerKeys  # noqa: PLC0414  # the server names it too
    from fleet.domain.access import Actor

__all__ = [
    "KeyRing",
    "RevokedFile",
    "SigningKey",
    "issuer_keys",
    "own_token",
    "rotate_key",
    "signed",
    "signs_alike",
]


def issuer_keys(issuer: str) -> IssuerKeys:
    from fleet.adapters.oidc_keys import IssuerKeys

    return IssuerKeys(issuer)


def signed(claims: dict[str, Any], key: SigningKey) -> str:
    """Return the claims as a signed JWT."""
    import jwt  # start-up time

    return jwt.encode(claims, key.value, algorithm="HS256", headers={"kid": key.id})


def own_token(home: Path, actor: Actor, *, seconds: float) -> str:
    """Return a token for this actor, signed by this home's key, which its server accepts."""
    at = time.time()
    claims = claims_of(actor, secrets.token_hex(8), at=at, until=int(at + seconds))
    return signed(claims, KeyRing(home, {}).own())


def signs_alike(home: Path, env: Mapping[str, str]) -> bool:
    """Whether this home's running server signs with the key that we sign with, or none runs."""
    key = serving(home).get("key")
    return key is None or key == KeyRing(home, env).signing().id


def rotate_key(home: Path, env: Mapping[str, str], overlap: float) -> SigningKey:
    """Sign with a new key; the older ones verify tokens for `overlap` more seconds."""
    ring = KeyRing(home, env)
    if ring.by_secret or serving(home).get("by_secret"):
        raise Refused(
            "The server signs tokens with JWT_SECRET, which Fleet cannot change.",
            fix="In the server's environment set JWT_SECRET_PREVIOUS to the current secret and JWT_SECRET to "
            "a new one, then restart the server.",
            code="by_secret",
        )
    return ring.rotate(overlap)
