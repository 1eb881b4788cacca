"""Processes and clocks of this machine, and all that differs between Linux and macOS.

Linux reads `/proc`. Without it (macOS, or a `/proc` that is hidden) sessions are asked of the
kernel pid by pid, and environments of `ps`. The macOS branches have not been run on macOS.
The keeper imports this module, so it imports little.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

PROC = "/proc"
DARWIN = sys.platform == "darwin"
MARK = "FLEET_RUN_MARK"  # in the environment of everything a run starts: random, never reused
_MAX_PID = 99_999 if DARWIN else 4_194_304
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def has_proc() -> bool:
    return os.path.exists(f"{PROC}/self/stat")


def boot_id() -> str:
    """Differs after every boot; empty when it cannot be told."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    if DARWIN:
        import subprocess

        asked = subprocess.run(
            ["sysctl", "-n", "kern.boottime"], capture_output=True, text=True, check=False
        )
        return asked.stdout.strip()
    return ""


def since_boot() -> float:
    """Seconds that also pass while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def adopt_orphans() -> None:
    """Make children of dead children ours (Linux); elsewhere they are found by their session."""
    if not sys.platform.startswith("linux"):
        return
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def session_of(pid: int) -> int:
    """0 when there is no such process."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0
    except PermissionError:  # macOS, of another user
        return -1


def in_session(session: int) -> set[int]:
    """Every process of this session. Proof only for its leader, while it lives."""
    return {pid for pid in _pids() if session_of(pid) == session and not is_zombie(pid)}


def marked(mark: str) -> set[int]:
    """Every process whose environment carries this mark, on which a dead leader has no bearing."""
    needle = f"{MARK}={mark}".encode()
    return {pid for pid in _pids() if needle in environment(pid) and not is_zombie(pid)}


def environment(pid: int) -> bytes:
    """As it was at its start; empty when it cannot be read, which proves nothing."""
    if has_proc():
        with suppress(OSError), open(f"{PROC}/{pid}/environ", "rb") as file:
            return b"\0" + file.read() + b"\0"
        return b""
    if DARWIN:
        import subprocess

        argv = ["ps", "-Eww", "-o", "command=", "-p", str(pid)]
        return subprocess.run(argv, capture_output=True, check=False).stdout
    return b""


def can_prove() -> bool:
    """Whether environments can be read here, so that a mark that is not found is not there."""
    return has_proc() or DARWIN


def is_zombie(pid: int) -> bool:
    with suppress(OSError), open(f"{PROC}/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] == b"Z"
    return False


def send_signal(pid: int, number: int, *, mark: str = "", session: int = 0) -> None:
    """Only if it still is what it was found to be; a pidfd closes the gap where there is one."""
    with suppress(ProcessLookupError, PermissionError):
        fd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
        try:
            ours = bool(session) and session_of(pid) == session
            ours = ours or (bool(mark) and f"{MARK}={mark}".encode() in environment(pid))
            if not ours:
                return
            if fd >= 0:
                signal.pidfd_send_signal(fd, number)
            else:
                os.kill(pid, number)
        finally:
            if fd >= 0:
                os.close(fd)


def _pids() -> list[int]:
    if has_proc():
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    return [pid for pid in range(2, _MAX_PID) if session_of(pid) > 0]
