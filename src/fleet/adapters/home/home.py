"""The home: one folder with a store, its runs, and the id of this host."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from fleet.base import machine
from fleet.base.files import write_once
from fleet.domain.data import dataclass
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


SERVING = "server/serving.json"  # the record that a running server of this home writes


@dataclass(frozen=True, slots=True)
class Home:
    path: Path

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def worktrees(self) -> Path:
        return self.path / "worktrees"

    @property
    def ahead(self) -> Path:
        """The file that lists the workspaces that were made before their runs."""
        return self.path / "ahead.json"

    @property
    def bell(self) -> Path:
        return self.path / "bell"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def task_dir(self, task_id: str) -> Path:
        folder = self.path / "tasks" / task_id
        (folder / "artifacts").mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def ensure(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except (FileExistsError, NotADirectoryError) as error:
            raise Unavailable(
                f"{self.path} is not a directory.", fix="Set FLEET_HOME to another directory."
            ) from error

    def host_id(self) -> str:
        """Return this host's permanent id, such as `buildbox-3f2a9c`; it is random in part."""
        return self._kept("host", self.new_host_id)

    def new_host_id(self) -> str:
        name = os.uname().nodename.partition(".")[0].lower() or "host"
        return f"{name}-{os.urandom(3).hex()}"

    def key(self) -> bytes:
        """The secret that run tokens are made with."""
        return self._kept("key", lambda: os.urandom(32).hex()).encode()

    def _kept(self, name: str, make: Callable[[], str]) -> str:
        file = self.path / name
        with suppress(FileNotFoundError):
            return file.read_text("utf-8").strip()
        self.ensure()
        write_once(file, make() + "\n")  # of two processes that write it at once, one wins
        return file.read_text("utf-8").strip()

    def run_token(self, run_id: str) -> str:
        import hmac  # noqa: PLC0415  # it loads OpenSSL, and few commands make or check one

        return hmac.new(self.key(), run_id.encode(), "sha256").hexdigest()

    def is_token(self, run_id: str, token: str) -> bool:
        import hmac  # noqa: PLC0415  # likewise

        token_bytes = token.encode("utf-8", "surrogateescape")
        return hmac.compare_digest(self.run_token(run_id).encode(), token_bytes)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Take the supervisor's lock; yield False if another process has it."""
        self.ensure()
        fd = os.open(self.path / "supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _locked(fd):
                yield False
                return
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
            yield True
        finally:
            os.close(fd)

    def supervisor_pid(self) -> int:
        """Return the supervisor's process id by its lock; 0 when none runs here."""
        try:
            fd = os.open(self.path / "supervisor.lock", os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return 0
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(os.pread(fd, 20, 0).strip() or -1)
        finally:
            os.close(fd)
        return 0


def _locked(fd: int) -> bool:
    """Try to lock a few times, as a check for a supervisor holds the lock for microseconds."""
    for _ in range(10):
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.002)
    return False


def boot() -> str:
    return machine.boot_id()
