"""The server on this machine: its key, its tokens, its process and its address."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.home import SERVING
from fleet.adapters.processes.background import Service, born, fleet_argv, is_alive, within
from fleet.base.files import write_atomically, write_once
from fleet.domain.access import claims_of
from fleet.domain.errors import BadInput, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from subprocess import Popen
    from typing import IO

    from fleet.app import App
    from fleet.domain.access import Actor

__all__ = [
    "Service",
    "begin",
    "check_store",
    "noted",
    "own_token",
    "server_key",
    "service_of",
    "serving_at",
    "serving_pid",
    "signed",
    "within",
]


STORES = {"": "", "sqlite": "sqlite", "postgresql": "postgres", "postgres": "postgres"}


def server_key(home: Path, secret: str = "") -> bytes:
    """By `JWT_SECRET`, else a key made once and kept where only you can read it."""
    if secret:
        return hashlib.sha256(secret.encode()).digest()
    path = home / "server.key"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_once(path, secrets.token_hex(32) + "\n")
    return bytes.fromhex(path.read_text("ascii").strip())


def signed(home: Path, claims: dict[str, Any], secret: str = "") -> str:
    """The claims as a token that this home's server accepts."""
    import jwt  # start-up time

    return jwt.encode(claims, server_key(home, secret), algorithm="HS256")


def own_token(home: Path, actor: Actor, *, seconds: float, secret: str = "") -> str:
    """A token for this actor, signed with the key of this home's server."""
    at = int(time.time())
    claims = claims_of(actor, secrets.token_hex(8), at=at, until=at + int(seconds))
    return signed(home, claims, secret)


def begin(service: Service, words: Sequence[str], *, port: int, cwd: Path) -> Popen[bytes]:
    """Start `fleet WORDS` in the directory that it serves, without importing modules from there."""
    return service.start(fleet_argv(words), env=os.environ, port=port, cwd=str(cwd))


def check_store(app: App) -> None:
    """Raise unless the store is what `STORAGE_BACKEND` says: few read the warnings of a server."""
    backend = app.env.get("STORAGE_BACKEND", "").lower()
    if backend not in STORES:
        raise BadInput(
            f"STORAGE_BACKEND: there is no '{backend[:30]}' store here.",
            fix="Set it to sqlite or postgresql, or leave it out.",
            code="no_such_store",
        )
    if STORES[backend] and not app.loaded.settings.store.url.startswith(STORES[backend]):
        raise BadInput(
            f"STORAGE_BACKEND is {backend}, but the store's address is of another kind.",
            fix="Set DATABASE_URL (postgresql) or DB_PATH (sqlite), or `store.url` alone.",
            code="no_such_store",
        )


def service_of(home: Path) -> Service:
    return Service("server", home / "server", home / "logs" / "server.log")


@contextmanager
def noted(home: Path, url: str) -> Iterator[None]:
    """Let commands of this home find the server. Raise `Refused` if one runs already."""
    file = home / SERVING
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (file.parent / "serving.lock").open("a") as lock:
        _take(lock, home)
        with _written(file, home, url):
            yield


def _take(lock: IO[str], home: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        url = serving_at(home)
        at = f" at {url} (pid {serving_pid(home)})" if url else ""
        raise Refused(
            f"A server of this home is already running{at}.",
            fix="Use that one, or stop it first; another FLEET_HOME can have its own.",
            code="serving",
        ) from None


@contextmanager
def _written(file: Path, home: Path, url: str) -> Iterator[None]:
    key = _fingerprint(server_key(home, os.environ.get("JWT_SECRET", "")))
    record = {"url": url, "pid": os.getpid(), "born": born(os.getpid()), "key": key}
    write_atomically(file, json.dumps(record) + "\n")
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            if json.loads(file.read_bytes()) == record:  # another server may have started since
                file.unlink()


def serving_at(home: Path, secret: str | None = None) -> str:
    """The address of this home's server; empty when none runs.

    With a `secret` (empty: the key of the home), also empty when the server refuses its tokens.
    """
    try:
        record = json.loads((home / SERVING).read_bytes())
        alive = is_alive(record["pid"], record["born"])
        if secret is not None:
            alive = alive and record["key"] == _fingerprint(server_key(home, secret))
        return str(record["url"]) if alive else ""
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def serving_pid(home: Path) -> int:
    """The process of this home's server; 0 when none runs."""
    try:
        record = json.loads((home / SERVING).read_bytes())
        return int(record["pid"]) if is_alive(record["pid"], record["born"]) else 0
    except (OSError, ValueError, TypeError, KeyError):
        return 0


def _fingerprint(key: bytes) -> str:
    """Identifies a key without revealing it."""
    return hashlib.sha256(b"mark " + key).hexdigest()[:16]
