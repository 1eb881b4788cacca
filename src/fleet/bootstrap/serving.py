"""What the server needs of this machine: its key, and its being a service."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fleet.adapters.host.daemon import born
from fleet.adapters.host.files import write_atomically, write_once
from fleet.adapters.host.service import Service, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "Service",
    "noted",
    "server_key",
    "service_of",
    "serving_at",
    "serving_pid",
    "signed",
    "within",
]


def server_key(home: Path, secret: str = "") -> bytes:
    """`JWT_SECRET`, else one that is made once and kept where only you can read it."""
    if secret:
        return hashlib.sha256(secret.encode()).digest()
    path = home / "server.key"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_once(str(path), secrets.token_hex(32) + "\n")
    return bytes.fromhex(path.read_text("ascii").strip())


def signed(home: Path, claims: dict[str, Any], secret: str = "") -> str:
    """What is claimed, as a token that this home's server believes."""
    import jwt  # start-up time

    return jwt.encode(claims, server_key(home, secret), algorithm="HS256")


def service_of(home: Path) -> Service:
    return Service("server", home / "server", home / "logs" / "server.log")


@contextmanager
def noted(home: Path, url: str) -> Iterator[None]:
    """While it serves, commands of this home find it."""
    file = home / "server" / "serving.json"
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = _mark(server_key(home, os.environ.get("JWT_SECRET", "")))
    mine = {"url": url, "pid": os.getpid(), "born": born(os.getpid()), "key": key}
    write_atomically(file, json.dumps(mine) + "\n")
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            if json.loads(file.read_bytes()) == mine:  # another may have begun since
                file.unlink()


def serving_at(home: Path, secret: str | None = None) -> str:
    """The address of this home's server; empty when none runs.

    With a `secret` (empty: the key of the home), also when it does not take tokens made with that.
    """
    try:
        held = json.loads((home / "server" / "serving.json").read_bytes())
        there = born(held["pid"]) == held["born"]
        if secret is not None:
            there = there and held["key"] == _mark(server_key(home, secret))
        return str(held["url"]) if there else ""
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def serving_pid(home: Path) -> int:
    """The process of this home's server; 0 when none runs."""
    try:
        held = json.loads((home / "server" / "serving.json").read_bytes())
        return int(held["pid"]) if born(held["pid"]) == held["born"] else 0
    except (OSError, ValueError, TypeError, KeyError):
        return 0


def _mark(key: bytes) -> str:
    """By which a key is known again, and which tells nothing of it."""
    return hashlib.sha256(b"mark " + key).hexdigest()[:16]
