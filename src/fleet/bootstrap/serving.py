"""What the server needs of this machine: its key, and its being a service."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING

from fleet.adapters.host.files import write_once
from fleet.adapters.host.service import Service, within

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Service", "server_key", "service_of", "within"]


def server_key(home: Path, secret: str = "") -> bytes:
    """`JWT_SECRET`, else one that is made once and kept where only you can read it."""
    if secret:
        return hashlib.sha256(secret.encode()).digest()
    path = home / "server.key"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_once(str(path), secrets.token_hex(32) + "\n")
    return bytes.fromhex(path.read_text("ascii").strip())


def service_of(home: Path) -> Service:
    return Service("server", home / "server", home / "logs" / "server.log")
