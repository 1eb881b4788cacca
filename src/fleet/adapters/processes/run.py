"""Run another program to its end or to its deadline."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from fleet.base import machine
from fleet.domain.data import dataclass
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

KILLED_SECONDS = 10.0  # for killed processes to disappear
LONGEST_POLL = 2**31 - 1  # milliseconds that poll(2) can wait: 24 days


class Missing(Unavailable):
    """The program is not installed on this machine."""


class TooLate(Unavailable):
    """The program did not end in time, so it was killed."""


@dataclass(frozen=True, slots=True)
class Done:
    status: int
    out: str
    err: str
    raw: bytes = b""  # its output undecoded: a file may have any name

    @property
    def words(self) -> str:
        """The end of its output, on one line."""
        return " ".join((self.err or self.out).split())[-300:] or f"status {self.status}"


def run(
    argv: Sequence[str],
    cwd: Path,
    *,
    env: Mapping[str, str],
    timeout: float,
    mark: str = "",
    stdin: bytes = b"",
    in_memory: bool = False,
    ends_with_us: bool = False,
) -> Done:
    """In a session of its own, so that a Ctrl-C meant for fleet does not reach it.

    Its output goes to files, not pipes: a child that it leaves behind may hold them open, and fleet
    does not wait for that. `in_memory`: it leaves no child behind that could fill the memory.
    `ends_with_us`: kill it when fleet is interrupted.
    """
    marked = {**env, machine.MARK: mark} if mark else env
    scratch = _in_memory if in_memory else _on_disk
    with scratch() as out, scratch() as err, scratch() as input_file:
        input_file.write(stdin)
        input_file.seek(0)
        try:
            process = subprocess.Popen(
                argv, cwd=cwd, env=marked, stdin=input_file, stdout=out, stderr=err,
                start_new_session=True,
            )  # fmt: skip
        except FileNotFoundError as error:
            if not cwd.is_dir():
                raise Unavailable(f"{cwd} does not exist.") from error
            raise Missing(f"{argv[0]} was not found.", fix=f"Install {argv[0]}.") from error
        try:
            status = _wait(process, timeout)
        except subprocess.TimeoutExpired as error:
            _kill(process)
            command = " ".join(argv[:2])
            raise TooLate(f"{command} took more than {timeout:.0f} s.") from error
        except BaseException:
            if ends_with_us:
                _kill(process)
            raise
        raw = _bytes(out)
        return Done(status, raw.decode("utf-8", "replace"), _text(err), raw)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait(process: subprocess.Popen[bytes], timeout: float) -> int:
    """Wakes when the process ends; `Popen.wait` polls, with ever longer sleeps."""
    try:
        end = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not on Linux, or no descriptor left
        return process.wait(timeout)
    try:
        poll = select.poll()
        poll.register(end, select.POLLIN)
        ended = poll.poll(min(max(0, timeout) * 1000, LONGEST_POLL))
    finally:
        os.close(end)
    return process.wait(None if ended else 0)


def _in_memory() -> IO[bytes]:
    try:
        return os.fdopen(os.memfd_create("fleet"), "w+b")
    except (AttributeError, OSError):  # not on Linux, or not allowed
        return _on_disk()


def _on_disk() -> IO[bytes]:
    from tempfile import TemporaryFile  # noqa: PLC0415  # start-up time

    return TemporaryFile()


def _bytes(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _text(file: IO[bytes]) -> str:
    return _bytes(file).decode("utf-8", "replace")


def end_marked(mark: str) -> bool:
    """Kill the processes with this mark that outlived the process which started them."""
    until, quiet = time.monotonic() + KILLED_SECONDS, 0
    while quiet < 3:  # a process shows no environment while it executes another program
        pids = machine.kill_marked(mark)
        quiet = 0 if pids else quiet + 1
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True
