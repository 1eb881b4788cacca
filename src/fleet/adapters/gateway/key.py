"""The gateway's key: from the environment, else from a private file that Fleet writes."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from fleet.base.files import write_once

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleet.domain.fleet import Gateway

FILE = "gateway.key"


def ensure_key(home: Path) -> Path:
    """Create the key's file if it is missing; running programs go on using the same key."""
    path = home / FILE
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_once(path, f"sk-{secrets.token_urlsafe(32)}\n")
    return path


def fingerprint(key: str) -> str:
    """Return a short hash, by which a changed key is noticed, and which does not reveal it."""
    import hashlib  # noqa: PLC0415  # start-up time

    return hashlib.sha256(key.encode()).hexdigest()[:8]


def key_of(gateway: Gateway, home: Path, env: Mapping[str, str]) -> str:
    """Return the gateway's key; empty when there is none yet."""
    if key := env.get(gateway.master_key_env, ""):
        return key
    try:
        return (home / FILE).read_text("utf-8").strip()
    except FileNotFoundError:
        return ""
