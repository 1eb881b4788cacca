"""The supervisor as a process: start it apart from any terminal, find it by its lock, end it."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleet import __version__
from fleet.adapters.processes.background import (
    PACKAGE,
    Background,
    born,
    fleet_argv,
    is_alive,
    read_record,
    within,
)
from fleet.base import machine
from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

    from fleet.adapters.home.home import Home

KEEPER = (  # all of the package that a keeper loads
    *("__init__.py", "keeper.py"),
    *("base/__init__.py", "base/files.py", "base/machine.py", "base/lean.py"),
)
LARGEST_LOG = 5 << 20  # bytes; a larger log is put away at the next start
EXIT_SECONDS = 3.0  # for a process that has released its lock to exit


class SupervisorRecord(NamedTuple):
    """What a supervisor writes into `supervisor.json`. The lock alone decides which one runs."""

    pid: int
    born: str = ""  # its start in the kernel's ticks: with the pid, it identifies the process
    started_at: int = 0
    version: str = ""
    code: str = ""  # the fingerprint of the package that it runs
    host: str = ""
    detached: bool = False
    coder: str = ""
    most: int = 0
    config: str = ""
    cwd: str = ""
    supervising: bool = False  # its host is in the store
    complaints: Mapping[str, str] = {}  # by project; never changed
    error: str = ""
    error_at: int = 0


class SupervisorProcess(Background):
    """Found by its lock; `supervisor.json` describes it."""

    def __init__(self, home: Home) -> None:
        super().__init__(home.logs / "supervisor.log", largest_log=LARGEST_LOG)
        self._home = home
        self._file = home.path / "supervisor.json"

    def last(self) -> SupervisorRecord | None:
        """The record of the newest supervisor, whether or not it runs."""
        return read_record(self._file, SupervisorRecord)

    def running(self) -> SupervisorRecord | None:
        """The record of the running one. A command that supervises a run also holds the lock."""
        last = self.last()
        if last is None or last.pid != self._home.supervisor_pid():
            return None
        return last if born(last.pid) == last.born else None

    def record(
        self, *, detached: bool, coder: str, most: int, config: str, cwd: str
    ) -> SupervisorRecord:
        """The record of this process."""
        pid = os.getpid()
        return SupervisorRecord(
            pid=pid,
            born=born(pid),
            started_at=time.time_ns() // 1000,
            version=__version__,
            code=self.fingerprint(),
            host=self._home.host_id(),
            detached=detached,
            coder=coder,
            most=most,
            config=config,
            cwd=cwd,
        )

    def note(self, record: SupervisorRecord) -> None:
        write_atomically(self._file, json.dumps(record._asdict(), indent=1) + "\n")

    def start(self, words: Sequence[str], *, cwd: str) -> subprocess.Popen[bytes]:
        """Run `fleet WORDS` with our umask: agents create files with the user's permissions."""
        self._home.ensure()
        return self.launch(fleet_argv(words), cwd=cwd)

    def wait_for(self, process: subprocess.Popen[bytes], seconds: float) -> bool:
        """Whether it supervises. False: it has ended, or was not ready in time."""
        supervises = False

        def settled() -> bool:
            nonlocal supervises
            ended = process.poll() is not None  # first: it may have supervised until then
            running = self.running()
            supervises = bool(running and running.pid == process.pid and running.supervising)
            return supervises or ended

        within(seconds, settled)
        return supervises

    def supervises(self) -> bool:
        """Whether a supervisor of this home sees every event."""
        running = self.running()
        return running is not None and running.supervising

    def stop(self, record: SupervisorRecord, seconds: float) -> bool:
        """Ask that very process to end. True once it has released the lock and exited."""
        machine.send_signal_if(record.pid, signal.SIGTERM, lambda: self._is(record))
        if not within(seconds, lambda: not self._is(record)):
            return False
        within(EXIT_SECONDS, lambda: not record.born or not is_alive(record.pid, record.born))
        return True

    def _is(self, record: SupervisorRecord) -> bool:
        running = self.running()
        return running is not None and (running.pid, running.born) == (record.pid, record.born)

    @staticmethod
    def fingerprint() -> str:
        """The hash of the package as it is on disk now."""
        files = (f for kind in ("py", "sql", "md") for f in PACKAGE.rglob(f"*.{kind}"))
        return _hash(PACKAGE, sorted(str(f.relative_to(PACKAGE)) for f in files))

    def keep_code(self) -> Path:
        """A copy of what a keeper loads, so that one can start while the package is being replaced.

        On a full disk the package itself: the supervisor must still look after running agents.
        """
        folder = self._home.path / "keeper"
        copy = folder / _hash(PACKAGE, KEEPER)
        try:
            _copy(copy)
        except OSError:
            return PACKAGE.parent
        for other in set(folder.iterdir()) - {copy}:
            import shutil  # noqa: PLC0415  # start-up time

            shutil.rmtree(other, ignore_errors=True)
        return copy


def _copy(into: Path) -> None:
    if (into / "whole").exists():
        return
    for name in KEEPER:
        target = into / "fleet" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, (PACKAGE / name).read_text("utf-8"))
        _compile(target)
    write_atomically(into / "whole", "")


def _compile(file: Path) -> None:
    """Now, not in a keeper: on a full disk Python leaves half a file, which cannot load."""
    import importlib.util  # noqa: PLC0415  # once in a version's life
    import marshal  # noqa: PLC0415

    source = file.read_bytes()
    code = compile(source, str(file), "exec", dont_inherit=True)
    unchecked = (1).to_bytes(4, "little")  # Python then ignores the times of the files
    head = importlib.util.MAGIC_NUMBER + unchecked + importlib.util.source_hash(source)
    target = Path(importlib.util.cache_from_source(str(file)))
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(head + marshal.dumps(code))


def _hash(root: Path, names: Sequence[str]) -> str:
    import hashlib  # noqa: PLC0415  # few commands need one

    digest = hashlib.sha256()
    for name in names:
        body = (root / name).read_bytes()
        digest.update(f"{name}\0{len(body)}\0".encode() + body)
    return digest.hexdigest()[:16]
