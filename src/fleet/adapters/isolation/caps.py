"""Hard caps on the memory, the processes and the processors of one run, without a container engine.

By a control group of its own below this process's, of version 1 or 2. Where none can be made, by
looking: what exceeds its memory or its processes is killed within a fifth of a second, and whole
processors are given to it.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from fleet.domain.data import NamedTuple

MEMORY, PIDS = "memory", "pids"  # what a run can exceed
LOOK_SECONDS = 0.2  # seconds between two looks
GONE = 2.0  # seconds for the processes of a group to end once they are killed
PEEK = 0.05
KILLED = 128 + signal.SIGKILL
FULL = 0.95  # the share of its memory that one had which was killed for that
PERIOD = 100_000  # microseconds: the time over which processors are shared out


class ContainerLimits(NamedTuple):
    """0: none."""

    memory: int = 0
    cpus: float = 0
    pids: int = 0


class Group:
    """A control group: one folder with version 2, one for each controller with version 1."""

    def __init__(self, folders: dict[str, str], *, unified: bool) -> None:
        self.folders, self._unified = folders, unified

    def limit(self, limits: ContainerLimits) -> None:
        """Raise `OSError` when a limit cannot be set."""
        quota = f"{int(limits.cpus * PERIOD)}"
        if limits.pids:
            self._write(PIDS, "pids.max", str(limits.pids))
        if self._unified:
            if limits.memory:
                self._write(MEMORY, "memory.max", str(limits.memory))
                self._write(MEMORY, "memory.swap.max", "0", needed=False)
                self._write(MEMORY, "memory.oom.group", "1", needed=False)
            if limits.cpus:
                self._write("cpu", "cpu.max", f"{quota} {PERIOD}")
            return
        if limits.memory:
            self._write(MEMORY, "memory.limit_in_bytes", str(limits.memory))
            self._write(MEMORY, "memory.memsw.limit_in_bytes", str(limits.memory), needed=False)
        if limits.cpus:
            self._write("cpu", "cpu.cfs_period_us", str(PERIOD))
            self._write("cpu", "cpu.cfs_quota_us", quota)

    def _write(self, controller: str, name: str, value: str, *, needed: bool = True) -> None:
        try:
            _put(f"{self.folders[controller]}/{name}", value)
        except OSError:  # such as swap that is not counted
            if needed:
                raise

    def enter(self) -> None:
        """Put the calling process into it, with all that it starts."""
        for folder in set(self.folders.values()):
            _put(f"{folder}/cgroup.procs", "0")

    def over(self) -> str:
        """What was exceeded, if anything: processes were killed for memory, or could not start."""
        events = "memory.events" if self._unified else "memory.oom_control"
        if _count(f"{self.folders[MEMORY]}/{events}", "oom_kill"):
            return MEMORY
        return PIDS if _count(f"{self.folders[PIDS]}/pids.events", "max") else ""

    def peak(self) -> int:
        """The most memory that it has had, in bytes."""
        name = "memory.peak" if self._unified else "memory.max_usage_in_bytes"
        words = _get(f"{self.folders[MEMORY]}/{name}").split()
        return int(words[0]) if words else 0

    def remove(self) -> None:
        """End what is left in it, and remove it."""
        until = time.monotonic() + GONE
        for folder in set(self.folders.values()):
            while True:
                with suppress(OSError):
                    Path(folder).rmdir()
                if not Path(folder).is_dir() or time.monotonic() > until:
                    break
                for pid in _pids(f"{folder}/cgroup.procs"):
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)


def make_group(name: str) -> Group | None:
    """A new group below our own, which processes can enter; None: it cannot be made here."""
    for unified, parents in ((True, _unified_parents()), (False, _parents())):
        for parent in parents:
            group = Group({key: f"{p}/{name}" for key, p in parent.items()}, unified=unified)
            try:
                for folder in sorted(set(group.folders.values())):
                    Path(folder).mkdir()
            except OSError:
                group.remove()
                continue
            if _can_enter(group):
                return group
            group.remove()
    return None


def _can_enter(group: Group) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            group.limit(ContainerLimits(memory=1 << 40, pids=1000))
            group.enter()
            os._exit(0)
        except BaseException:  # noqa: BLE001  # this is a copy: it ends here
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _unified_parents() -> list[dict[str, str]]:
    """Our own group, which the controllers must be enabled for, else the one above it."""
    mount, own = _mounts().get("", ""), _own().get("", "")
    if not mount:
        return []
    group = Path(f"{mount}{own}")
    usable = []
    for parent in (str(group), str(group.parent)):
        if not parent.startswith(mount):
            continue
        with suppress(OSError):  # a group with processes cannot pass controllers on, but the root
            _put(f"{parent}/cgroup.subtree_control", "+memory +pids +cpu")
        if {MEMORY, PIDS, "cpu"} <= set(_get(f"{parent}/cgroup.subtree_control").split()):
            usable.append(dict.fromkeys((MEMORY, PIDS, "cpu"), parent))
    return usable


def _parents() -> list[dict[str, str]]:
    mounts, own = _mounts(), _own()
    names = (MEMORY, PIDS, "cpu")
    if not all(name in mounts and name in own for name in names):
        return []
    return [{name: f"{mounts[name]}{own[name]}".rstrip("/") for name in names}]


def _mounts() -> dict[str, str]:
    """Where each controller is mounted; the empty name is that of version 2."""
    mounts = {}
    for line in _get("/proc/self/mountinfo").splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.partition(" ")
        if kind == "cgroup2":
            mounts[""] = fields.split()[4]
        elif kind == "cgroup":
            mounts |= dict.fromkeys(options.split()[-1].split(","), fields.split()[4])
    return mounts


def _own(pid: int = 0) -> dict[str, str]:
    """The group of a process by controller; the empty name is that of version 2."""
    text = _get(f"/proc/{pid or 'self'}/cgroup")
    lines = (line.split(":", 2) for line in text.splitlines())
    return {name: path for _, names, path in lines for name in names.split(",")}


def give_processors(cpus: float) -> None:
    """Give the calling process, and all that it starts, so many whole processors."""
    usable = sorted(os.sched_getaffinity(0))
    if cpus and math.ceil(cpus) < len(usable):
        first = os.getpid() % len(usable)
        chosen = [usable[(first + n) % len(usable)] for n in range(math.ceil(cpus))]
        os.sched_setaffinity(0, chosen)


class LimitsWatch:
    """Kills what `root` started when it exceeds its limits."""

    def __init__(self, root: int, limits: ContainerLimits) -> None:
        self._root, self._limits, self.exceeded = root, limits, ""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self.exceeded:
            time.sleep(LOOK_SECONDS)
            pids = descendants(self._root)
            if self._limits.pids and len(pids) > self._limits.pids:
                self.exceeded = PIDS
            elif self._limits.memory and sum(map(_memory, pids)) > self._limits.memory:
                self.exceeded = MEMORY
        for pid in descendants(self._root):  # the first below bwrap takes all of them with it
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


class Peek:
    """Looks at the group that an engine made for this process. It is gone once the process is.

    An engine may not notice that a process was killed for memory: Podman's on version 1 does not.
    """

    def __init__(self, pid: int, limits: ContainerLimits) -> None:
        mounts, own = _mounts(), _own(pid)
        unified = MEMORY not in own
        names = {name: "" if unified else name for name in (MEMORY, PIDS)}
        folders = {k: f"{mounts.get(n, '')}{own.get(n, '')}" for k, n in names.items()}
        self._group, self._limits, self._exceeded, self._peak = (
            Group(folders, unified=unified),
            limits,
            "",
            0,
        )
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while self._exceeded != MEMORY and Path(self._group.folders[MEMORY]).is_dir():
            self._exceeded = self._group.over() or self._exceeded
            self._peak = max(self._peak, self._group.peak())
            time.sleep(PEEK)

    def over(self, status: int) -> str:
        """`status`: its exit status. One that was killed with its memory full was killed for that."""
        full = self._limits.memory and self._peak > FULL * self._limits.memory
        return MEMORY if status == KILLED and full else self._exceeded


def descendants(pid: int) -> list[int]:
    """The descendants of this process, the oldest first."""
    below: list[int] = []
    ahead = [pid]
    while ahead:
        at = ahead.pop(0)
        with suppress(OSError):
            for thread in Path(f"/proc/{at}/task").iterdir():
                children = [int(n) for n in _get(f"{thread}/children").split()]
                below += children
                ahead += children
    return below


def _memory(pid: int) -> int:
    """The process's own share of its memory, in bytes."""
    return 1024 * _count(f"/proc/{pid}/smaps_rollup", "Pss:")


def _count(path: str, name: str) -> int:
    for line in _get(path).splitlines():
        words = line.split()
        if words and words[0] == name:
            return int(words[1])
    return 0


def _pids(path: str) -> list[int]:
    return [int(word) for word in _get(path).split()]


def _get(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except OSError:
        return ""


def _put(path: str, text: str) -> None:
    Path(path).write_text(text, "utf-8")
