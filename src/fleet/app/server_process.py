"""The server on this machine: its process and its address."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.home import SERVING
from fleet.adapters.processes.background import Service, born, fleet_argv, is_alive, within
from fleet.base.files import write_atomically
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from subprocess import Popen
    from typing import IO

__all__ = [
    "Service",
    "begin",
    "noted",
    "service_of",
    "serving",
    "serving_at",
    "serving_pid",
    "within",
]


def begin(service: Service, words: Sequence[str], *, port: int, cwd: Path) -> Popen[bytes]:
    """Start `fleet WORDS` in the directory that it serves, without importing modules from there."""
    return service.start(fleet_argv(words), env=os.environ, port=port, cwd=str(cwd))


def service_of(home: Path) -> Service:
    return Service("server", home / "server", home / "logs" / "server.log")


@contextmanager
def noted(home: Path, url: str) -> Iterator[None]:
    """Record the server's address for this home's commands; raise `Refused` if one runs already."""
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
    from fleet.adapters.home.key_ring import KeyRing

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
    return str(serving(home).get("url", ""))


def serving_pid(home: Path) -> int:
    """The process of this home's server; 0 when none runs."""
    return int(serving(home).get("pid", 0))


def serving(home: Path) -> dict[str, Any]:
    """Return the running server's record of itself; empty when none runs."""
    try:
        record: dict[str, Any] = json.loads((home / SERVING).read_bytes())
        return record if is_alive(record["pid"], record["born"]) else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
