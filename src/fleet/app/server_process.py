"""The server on this machine: its key, its tokens, its process and its address."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.home import SERVING
from fleet.adapters.home.key_ring import Key, KeyRing
from fleet.adapters.home.revoked_file import RevokedFile
from fleet.adapters.processes.background import Service, born, fleet_argv, is_alive, within
from fleet.base.files import write_atomically
from fleet.domain.access import claims_of
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from subprocess import Popen
    from typing import IO

    from fleet.adapters.oidc_keys import IssuerKeys as IssuerKeys  # noqa: PLC0414  # the server names it too
    from fleet.domain.access import Actor

__all__ = [
    "Key",
    "KeyRing",
    "RevokedFile",
    "Service",
    "begin",
    "noted",
    "own_token",
    "rotate_key",
    "service_of",
    "serving_at",
    "serving_pid",
    "signed",
    "signs_alike",
    "within",
]


def issuer_keys(issuer: str) -> IssuerKeys:
    from fleet.adapters.oidc_keys import IssuerKeys

    return IssuerKeys(issuer)


def signed(claims: dict[str, Any], key: Key) -> str:
    """The claims as a token."""
    import jwt  # start-up time

    return jwt.encode(claims, key.value, algorithm="HS256", headers={"kid": key.id})


def own_token(home: Path, actor: Actor, *, seconds: float) -> str:
    """A token for this actor, by the key of this home, which its own server always accepts."""
    at = time.time()
    claims = claims_of(actor, secrets.token_hex(8), at=at, until=int(at + seconds))
    return signed(claims, KeyRing(home, {}).own())


def signs_alike(home: Path, env: Mapping[str, str]) -> bool:
    """Whether a token that we sign is signed as this home's running server would; also if none runs."""
    key = _serving(home).get("key")
    return key is None or key == KeyRing(home, env).signing().id


def rotate_key(home: Path, env: Mapping[str, str], overlap: float) -> Key:
    """Sign with a new key; those until now verify for `overlap` more seconds."""
    ring = KeyRing(home, env)
    if ring.by_secret or _serving(home).get("by_secret"):
        raise Refused(
            "The server signs tokens with JWT_SECRET, which Fleet cannot change.",
            fix="In the server's environment set JWT_SECRET_PREVIOUS to the current secret and JWT_SECRET to "
            "a new one, then restart the server.",
            code="by_secret",
        )
    return ring.rotate(overlap)


def begin(service: Service, words: Sequence[str], *, port: int, cwd: Path) -> Popen[bytes]:
    """Start `fleet WORDS` in the directory that it serves, without importing modules from there."""
    return service.start(fleet_argv(words), env=os.environ, port=port, cwd=str(cwd))


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
    ring = KeyRing(home, os.environ)
    record = {
        "url": url, "pid": os.getpid(), "born": born(os.getpid()), "key": ring.signing().id,
        "by_secret": ring.by_secret,
    }  # fmt: skip
    write_atomically(file, json.dumps(record) + "\n")
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            if json.loads(file.read_bytes()) == record:  # another server may have started since
                file.unlink()


def serving_at(home: Path) -> str:
    """The address of this home's server; empty when none runs."""
    return str(_serving(home).get("url", ""))


def serving_pid(home: Path) -> int:
    """The process of this home's server; 0 when none runs."""
    return int(_serving(home).get("pid", 0))


def _serving(home: Path) -> dict[str, Any]:
    """What the running server wrote about itself; empty when none runs."""
    try:
        record: dict[str, Any] = json.loads((home / SERVING).read_bytes())
        return record if is_alive(record["pid"], record["born"]) else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
