"""The gateway's key: from the environment, else one that fleet made, in a private file."""

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
    """Made once, for programs that were started with it go on using it."""
    path = home / FILE
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_once(path, f"sk-{secrets.token_urlsafe(32)}\n")
    return path


def fingerprint(key: str) -> str:
    """By which a change of the key is seen; it gives next to nothing of the key away."""
    import hashlib  # noqa: PLC0415  # start-up time

    return hashlib.sha256(key.encode()).hexdigest()[:8]


def key_of(gateway: Gateway, home: Path, env: Mapping[str, str]) -> str:
    """Empty when there is none yet."""
    if key := env.get(gateway.master_key_env, ""):
        return key
    try:
        return (home / FILE).read_text("utf-8").strip()
    except FileNotFoundError:
        return ""
