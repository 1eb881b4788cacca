"""What the server needs of this machine: its key, and its being a service."""

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
    """`JWT_SECRET`, else one that is made once and kept where only you can read it."""
    if secret:
        return hashlib.sha256(secret.encode()).digest()
    path = home / "server.key"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_once(path, secrets.token_hex(32) + "\n")
    return bytes.fromhex(path.read_text("ascii").strip())


def signed(home: Path, claims: dict[str, Any], secret: str = "") -> str:
    """What is claimed, as a token that this home's server believes."""
    import jwt  # start-up time

    return jwt.encode(claims, server_key(home, secret), algorithm="HS256")


def own_token(home: Path, actor: Actor, *, seconds: float, secret: str = "") -> str:
    """A token of this home's server, whose key we can read, for this actor."""
    at = int(time.time())
    claims = claims_of(actor, secrets.token_hex(8), at=at, until=at + int(seconds))
    return signed(home, claims, secret)


def begin(service: Service, words: Sequence[str], *, port: int, cwd: Path) -> Popen[bytes]:
    """`fleet WORDS` in the directory that it serves, but with none of the modules that lie there."""
    return service.start(fleet_argv(words), env=os.environ, port=port, cwd=str(cwd))


def check_store(app: App) -> None:
    """Raise unless its records go where `STORAGE_BACKEND` says: a server outlives a warning."""
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
    """While it serves, commands of this home find it; there is one, or they would lose it."""
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
        there = serving_at(home)
        where = f" at {there} (pid {serving_pid(home)})" if there else ""
        raise Refused(
            f"A server of this home is already running{where}.",
            fix="Use that one, or stop it first; another FLEET_HOME can have its own.",
            code="serving",
        ) from None


@contextmanager
def _written(file: Path, home: Path, url: str) -> Iterator[None]:
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
        held = json.loads((home / SERVING).read_bytes())
        there = is_alive(held["pid"], held["born"])
        if secret is not None:
            there = there and held["key"] == _mark(server_key(home, secret))
        return str(held["url"]) if there else ""
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def serving_pid(home: Path) -> int:
    """The process of this home's server; 0 when none runs."""
    try:
        held = json.loads((home / SERVING).read_bytes())
        return int(held["pid"]) if is_alive(held["pid"], held["born"]) else 0
    except (OSError, ValueError, TypeError, KeyError):
        return 0


def _mark(key: bytes) -> str:
    """By which a key is known again, and which tells nothing of it."""
    return hashlib.sha256(b"mark " + key).hexdigest()[:16]
