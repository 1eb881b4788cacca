"""A program that runs without a terminal: the supervisor, the server, the gateway, the relay."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.base import machine
from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from subprocess import Popen

Record = TypeVar("Record", bound="tuple[Any, ...]")

PACKAGE = Path(__file__).parents[2]
BOOT = (
    "import sys; {root!r} in sys.path or sys.path.insert(0, {root!r}); "
    "from fleet.cli.main import main; sys.exit(main(sys.argv[1:]))"
)
LARGEST_LOG = 20 << 20  # bytes; a larger log is put away at the next start
LAST_WORDS = 1 << 16  # bytes at the end of the log that `words` reads
LOOK_SECONDS = 0.02  # seconds between two looks


class Background:
    """A background program. `log`: the file for all its output."""

    def __init__(self, log: Path, *, largest_log: int = LARGEST_LOG) -> None:
        self.log = log
        self._largest_log = largest_log

    def launch(
        self, argv: Sequence[str], *, cwd: str | Path, env: Mapping[str, str] | None = None
    ) -> Popen[bytes]:
        """In a session of its own. It inherits none of our descriptors, so no pipe waits for it.

        It inherits our umask: agents create files with the user's permissions.
        """
        import subprocess  # noqa: PLC0415  # start-up time of what only asks whether it runs

        with os.fdopen(self._open_log(), "ab") as log:
            return subprocess.Popen(
                list(argv), cwd=cwd, env=None if env is None else dict(env),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _open_log(self) -> int:
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.log.exists() and self.log.stat().st_size > self._largest_log:
            self.log.replace(self.log.with_name(f"{self.log.name}.1"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self.log, flags, 0o600)

    def log_size(self) -> int:
        """The size at the next start, which puts a large log away."""
        try:
            size = self.log.stat().st_size
        except OSError:
            return 0
        return 0 if size > self._largest_log else size

    def words(self, lines: int = 12, since: int = 0) -> str:
        """The last lines of its output, from this size of the log on."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(since, self.log.stat().st_size - LAST_WORDS))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


class ServiceRecord(NamedTuple):
    """Which process was started. It runs if a process with that pid was `born` then."""

    pid: int
    born: str
    started_at: int
    port: int
    version: str = ""
    restarts: int = 0  # how often it was started again after it had died
    booted: float = 0.0  # seconds from boot to its start: the clock can be set
    key: str = ""  # the gateway's, as a `fingerprint`; empty: not known, or it has none

    @property
    def age(self) -> float:
        return max(0.0, machine.since_boot() - self.booted)


class Service(Background):
    """A program found by the record that its starter writes into `folder`."""

    def __init__(self, name: str, folder: Path, log: Path) -> None:
        super().__init__(log)
        self.name = name
        self._file = folder / f"{name}.json"
        self._lock = folder / "lock"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock, so that two commands that start or stop it wait for each other."""
        self._lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def record(self) -> ServiceRecord | None:
        """The record of the process that was started and not stopped since; it may have died."""
        return read_record(self._file, ServiceRecord)

    def running(self) -> ServiceRecord | None:
        record = self.record()
        return record if record is not None and is_alive(record.pid, record.born) else None

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        port: int,
        version: str = "",
        cwd: str = "",
        restarts: int = 0,
        key: str = "",
    ) -> Popen[bytes]:
        """`cwd`: the directory it works on; else its own folder, which blocks no unmount."""
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        process = self.launch(argv, cwd=cwd or self._file.parent, env=env)
        record = ServiceRecord(
            process.pid, born(process.pid), time.time_ns() // 1000, port, version,
            restarts=restarts, booted=machine.since_boot(), key=key,
        )  # fmt: skip
        write_atomically(self._file, json.dumps(record._asdict()) + "\n")
        return process

    def stop(self, seconds: float) -> bool:
        """Ask it to end, then kill it. True if it ran."""
        record = self.running()
        if record is None:
            self._file.unlink(missing_ok=True)  # one that has died is not to be started again
            return False

        def lives() -> bool:
            return is_alive(record.pid, record.born)

        for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
            machine.send_signal_if(record.pid, number, lives)
            if within(patience, lambda: not lives()):
                break
        self._file.unlink(missing_ok=True)
        return True


def fleet_argv(words: Sequence[str]) -> list[str]:
    """`fleet WORDS` of this very package, ignoring modules in the current directory."""
    return [sys.executable, "-P", "-c", BOOT.format(root=str(PACKAGE.parent)), *words]


def read_record(file: Path, kind: type[Record]) -> Record | None:
    """The record that any release of fleet wrote; fields of another release are ignored."""
    try:
        fields = json.loads(file.read_bytes())
        known: Any = kind  # a NamedTuple
        record: Record = known(**{k: v for k, v in fields.items() if k in known._fields})
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return record


def is_alive(pid: int, at: str) -> bool:
    """Whether the process that was `born` then runs; another may have its pid by now."""
    return born(pid) == at and not machine.is_zombie(pid)


def within(seconds: float, is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def born(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty where the kernel does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    return stat.rpartition(b")")[2].split()[19].decode()
