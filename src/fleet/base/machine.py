"""Processes and clocks of this machine, and all that differs between Linux and macOS.

On Linux we read `/proc`. Without it (macOS, or a hidden `/proc`) we ask the kernel for the session
of each pid, and `ps` for environments. The macOS branches have not been run on macOS.
The keeper imports this module, so it imports little.
"""

from __future__ import annotations

import errno
import os
import sys
import time

from fleet.base.lean import signal, suppress

TYPE_CHECKING = False  # `typing` would be a fifth of a keeper's start
if TYPE_CHECKING:
    from collections.abc import Callable

PROC = "/proc"
DARWIN = sys.platform == "darwin"
SYSTEM = "macos" if DARWIN else sys.platform
MARK = "FLEET_RUN_MARK"  # in the environment of everything a run starts: random, never reused
_MAX_PID = 99_999 if DARWIN else 4_194_304
MOST_FILES = 65_536  # not more: some programs inherit the limit and close every number up to it
SPARE_FILES = 16  # with fewer left, SQLite, which opens several files at once, may fail
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def raise_file_limit() -> int:
    """Let this process open as many files as it may, up to `MOST_FILES`; return how many."""
    import resource

    soft, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (MOST_FILES if n == resource.RLIM_INFINITY else n for n in (soft, limit))
    wanted = min(hard, MOST_FILES)
    if soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, limit))
    except (OSError, ValueError):  # macOS has a lower limit of its own
        return soft
    return wanted


def is_out_of_files(error: BaseException | None) -> bool:
    """Whether this error, or one that caused it, is that too many files are open."""
    seen: set[int] = set()  # an error that is raised again may be its own cause
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return True
        if isinstance(error, ImportError) and os.strerror(errno.EMFILE) in str(error):
            return True  # of a shared library
        if "unable to open database file" in str(error) and _has_few_files_left():
            return True  # that is all that SQLite says
        error = error.__cause__ or error.__context__
    return False


def _has_few_files_left() -> bool:
    import resource

    try:
        used = len(os.listdir("/dev/fd"))
    except OSError:
        return True
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft != resource.RLIM_INFINITY and used > soft - SPARE_FILES


def has_proc() -> bool:
    return os.path.exists(f"{PROC}/self/stat")


def boot_id() -> str:
    """Differs after every boot; empty when the system does not tell it."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    if DARWIN:
        with suppress(OSError):
            return _output_of(["sysctl", "-n", "kern.bootsessionuuid"]).strip()
    return ""


def machine_id() -> str:
    """The id of this installation of the system; in a container, which has none, the host's name."""
    for file in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with suppress(OSError), open(file) as text:
            if name := text.read().strip():
                return name
    return os.uname().nodename


def is_another_boot(recorded: str) -> bool:
    """Whether `recorded` is the id of another boot; False when either id is unknown."""
    current = boot_id()
    return bool(recorded and current) and recorded != current


def since_boot() -> float:
    """Seconds since boot; they also pass while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def adopt_orphans() -> bool:
    """Make orphaned grandchildren our children (Linux); elsewhere we find them by their session."""
    if not sys.platform.startswith("linux"):
        return False
    with suppress(Exception):
        import _ctypes  # a fifth of `ctypes`

        process = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # this process itself
        prctl = _ctypes.dlsym(process, "prctl")
        return bool(_ctypes.call_function(prctl, (_SUBREAPER, 1, 0, 0, 0)) == 0)
    with suppress(Exception):
        import ctypes

        return bool(ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0) == 0)
    return False


def session_of(pid: int) -> int:
    """0 when there is no such process."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0
    except PermissionError:  # another user's process, on macOS
        return -1


def in_session(session: int) -> set[int]:
    """Every process of this session. Only its living leader can rely on it: the id may be reused."""
    return {pid for pid in _pids() if session_of(pid) == session and not is_zombie(pid)}


def marked(mark: str) -> set[int]:
    """Every process whose environment has this mark, even if the leader of its session is dead."""
    if not mark:
        return set()
    if has_proc():
        return {pid for pid in _pids() if _carries(pid, mark) and not is_zombie(pid)}
    return {pid for pid, environment in _environments().items() if f"{MARK}={mark}" in environment}


def _carries(pid: int, mark: str) -> bool:
    if has_proc():
        return f"\0{MARK}={mark}\0".encode() in _environment(pid)
    return f"{MARK}={mark}" in _environments(pid).get(pid, "")


def children(parent: int) -> set[int]:
    """The children of a process that have not ended; empty where there is no /proc."""
    if not has_proc():
        return set()
    return {pid for pid in _pids() if _parent(pid) == parent and not is_zombie(pid)}


def _environment(pid: int) -> bytes:
    """The environment that a process started with; empty if it ended or belongs to another user."""
    try:
        with open(f"{PROC}/{pid}/environ", "rb") as file:
            return b"\0" + file.read() + b"\0"
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def _environments(pid: int = 0) -> dict[int, str]:
    """By pid, command line and environment as `ps` shows them, of one process or of all; macOS only."""
    if not DARWIN:
        return {}
    selection = ["-p", str(pid)] if pid else ["-A"]
    environments = {}
    for line in _output_of(["ps", "-Eww", *selection, "-o", "pid=,command="]).splitlines():
        number, _, rest = line.strip().partition(" ")
        environments[int(number)] = rest
    return environments


def can_prove() -> bool:
    """Whether `marked` finds every process; macOS hides the environment of its own programs."""
    return has_proc()


def _output_of(argv: list[str]) -> str:
    import subprocess

    try:
        done = subprocess.run(argv, capture_output=True, check=False, timeout=10)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{argv[0]} did not answer") from error
    return done.stdout.decode("utf-8", "replace")


def is_zombie(pid: int) -> bool:
    return _stat(pid)[:1] == [b"Z"]


def _parent(pid: int) -> int:
    return int((_stat(pid)[1:2] or [b"0"])[0])


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat after the program's name: state, parent, group, session and so on."""
    with suppress(OSError), open(f"{PROC}/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()
    return []


def send_signal(
    pid: int, number: int, *, mark: str = "", session: int = 0, parent: int = 0
) -> None:
    """Send a signal only if the process still has this mark, session or parent."""

    def is_ours() -> bool:
        ours = bool(session) and session_of(pid) == session
        ours = ours or (bool(mark) and _carries(pid, mark))
        return ours or (bool(parent) and _parent(pid) == parent)

    send_signal_if(pid, number, is_ours)


def kill_marked(mark: str) -> set[int]:
    """Kill every process with this mark, and return which those were.

    They are stopped first: a shell whose command is killed before itself begins the next one.
    """
    pids = marked(mark)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            send_signal(pid, number, mark=mark)
    return pids


def send_signal_if(pid: int, number: int, is_ours: Callable[[], bool]) -> None:
    """Send the signal if `is_ours()`. A pidfd, where there is one, pins the process in between."""
    with suppress(ProcessLookupError, PermissionError):
        fd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
        try:
            if is_ours():
                signal.pidfd_send_signal(fd, number) if fd >= 0 else os.kill(pid, number)
        finally:
            if fd >= 0:
                os.close(fd)


def _pids() -> list[int]:
    if has_proc():
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    return [pid for pid in range(2, _MAX_PID) if session_of(pid) > 0]
