"""A program of ours that goes on without a terminal: started once, known by its birth, ended."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleet.adapters.processes.supervisor_process import born
from fleet.base import machine
from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

BIG = 20 << 20  # bytes of log, from which a new one is begun
GLANCE = 0.05


class ServiceRecord(NamedTuple):
    """Who was started. It runs if a process of that number was born then."""

    pid: int
    born: str
    started_at: int
    port: int
    version: str = ""


class Service:
    """`place` holds its record; `log` takes all it prints."""

    def __init__(self, name: str, place: Path, log: Path) -> None:
        self.name = name
        self.log = log
        self._file = place / f"{name}.json"
        self._lock = place / "lock"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Two commands that start or stop it wait for each other."""
        self._lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def running(self) -> ServiceRecord | None:
        try:
            held = json.loads(self._file.read_bytes())
            found = ServiceRecord(**{k: v for k, v in held.items() if k in ServiceRecord._fields})
        except (OSError, ValueError, TypeError, AttributeError):
            return None
        return found if _lives(found) else None

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        port: int,
        version: str = "",
        cwd: str = "",
    ) -> subprocess.Popen[bytes]:
        """In a session of its own. It holds none of our descriptors, so it keeps nobody waiting.

        `cwd`: where it is about a directory; else it is in its own, and keeps nobody from leaving.
        """
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.log.exists() and self.log.stat().st_size > BIG:
            self.log.replace(self.log.with_name(f"{self.log.name}.1"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        with os.fdopen(os.open(self.log, flags, 0o600), "ab") as log:
            process = subprocess.Popen(
                list(argv), cwd=cwd or self._file.parent, env=dict(env), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        now = time.time_ns() // 1000
        record = ServiceRecord(process.pid, born(process.pid), now, port, version)
        write_atomically(self._file, json.dumps(record._asdict()) + "\n")
        return process

    def stop(self, seconds: float) -> bool:
        """Ask it to end, then end it. True if it ran."""
        record = self.running()
        if record is None:
            return False
        for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
            machine.send_signal_if(record.pid, number, lambda: _lives(record))
            if within(patience, lambda: not _lives(record)):
                break
        self._file.unlink(missing_ok=True)
        return True

    def log_size(self) -> int:
        """As it will be when it is started: a big one is put away then."""
        size = self.log.stat().st_size if self.log.exists() else 0
        return 0 if size > BIG else size

    def words(self, lines: int = 12, since: int = 0) -> str:
        """The last that it printed, from this size of the log on."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(since, self.log.stat().st_size - (1 << 16)))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


def _lives(record: ServiceRecord) -> bool:
    return born(record.pid) == record.born and not machine.is_zombie(record.pid)


def within(seconds: float, seen: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not seen():
        if time.monotonic() > until:
            return False
        time.sleep(GLANCE)
    return True
