"""The program around a container: it starts it, caps it, and says what was exceeded.

    enclose ORDER COMMAND...

ORDER is JSON: see `Order`. It ends with the command's exit status, and leaves `caps.json` in the
run's folder: what caps the run, and what it exceeded. Its tidier, a process that the run's signals do
not reach, removes the container and its control group however this process ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from fleet.adapters.isolation import caps
from fleet.adapters.isolation.caps import ContainerLimits
from fleet.adapters.isolation.ways_out import Way, lead_out
from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

REPORT = "caps.json"
READY = "network.ready"
FAILED = 125  # its status when it could not run the command
START = 60.0  # seconds for a container to come up
ASK = 10.0  # seconds for an engine to answer
# In there: wait until the ways out are open.
HOLD = 'until [ -e "$0" ]; do sleep 0.05; done; exec "$@"'
OF_ENGINES = ("DOCKER_", "CONTAINER_", "CONTAINERS_", "XDG_RUNTIME_DIR", "DBUS_SESSION")
RELAYED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Order(NamedTuple):
    """`words` come before the command. `engine`: the program that runs containers, or nothing."""

    name: str
    folder: str
    words: list[str]
    limits: ContainerLimits
    ways: list[Way]
    engine: str = ""
    image: list[str] | tuple[str, ...] = ()  # what follows the engine's options
    scope: str = ""  # the systemd unit that caps it, instead of a control group of ours


def read(text: str) -> Order:
    order = Order(**json.loads(text))
    limits, ways = ContainerLimits(*order.limits), [Way(*each) for each in order.ways]
    return order._replace(limits=limits, ways=ways)


def main(words: list[str]) -> None:
    if words[0] == "--tidy":
        tidy(words[1])
        return
    order, command = read(words[0]), words[1:]
    group = None
    if not order.engine and not order.scope:
        group = caps.make_group(order.name)
    with Tidier(order, group):
        sys.exit(_run(order, group, command))


def _run(order: Order, group: caps.Group | None, command: list[str]) -> int:
    try:
        if group:
            group.limit(order.limits)
        child = _start(order, group, _argv(order, command))
        pid = _come_up(order, child) if order.engine or order.ways else 0
        if pid and order.ways:
            lead_out(pid, order.ways)
            Path(order.folder, READY).touch()
    except OSError as error:
        _complain(f"{error}")
        return FAILED
    over = _watch(order, group, child, pid)
    status = _wait(child)
    _report(order, group, over(status))
    return status


def _argv(order: Order, command: list[str]) -> list[str]:
    if order.ways:
        command = ["sh", "-c", HOLD, f"{order.folder}/{READY}", *command]
    if not order.engine:
        return [*order.words, *command]
    names = sorted(name for name in os.environ if not name.startswith(OF_ENGINES))
    terminal = ["--tty"] if os.isatty(0) else []
    env = [word for name in names for word in ("--env", name)]
    return [*order.words, *terminal, *env, *order.image, *command]


def _start(order: Order, group: caps.Group | None, argv: list[str]) -> int:
    """An engine is in a group of its own: its signals are ours to pass on."""
    alone = bool(order.engine)
    if alone:
        for number in RELAYED:
            signal.signal(number, lambda number, _frame: _relay(order, number))
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    child = os.fork()
    if child:
        return child
    try:
        if alone:
            os.chdir(order.folder)  # where Podman's monitor leaves a file `oom`
            os.setpgid(0, 0)
            if os.isatty(0):
                os.tcsetpgrp(0, os.getpid())
            for number in (*RELAYED, signal.SIGTTOU, signal.SIGQUIT, signal.SIGTSTP):
                signal.signal(number, signal.SIG_DFL)
        elif group:
            group.enter()
        elif not order.scope:
            caps.give_processors(order.limits.cpus)
        os.execvp(argv[0], argv)  # noqa: S606  # nosec B606  # a list, without a shell
    except OSError as error:
        _complain(f"{argv[0]}: {error.strerror}")
    os._exit(FAILED)


def _watch(order: Order, group: caps.Group | None, child: int, pid: int) -> Callable[[int], str]:
    """What says, by the exit status, which cap was exceeded."""
    if order.engine:
        peek = caps.Peek(pid, order.limits) if pid else None
        return lambda status: _engine_over(order) or (peek.over(status) if peek else "")
    if order.scope:
        return lambda _status: _scope_over(order.scope)
    if group:
        return lambda _status: group.over()
    watch = caps.LimitsWatch(child, order.limits)
    return lambda _status: watch.exceeded


def _relay(order: Order, number: int) -> None:
    with suppress(OSError, subprocess.SubprocessError):
        _ask(order, "kill", "--signal", str(int(number)), order.name)


def _come_up(order: Order, child: int) -> int:
    """The first process in the container; 0: it did not start, as its status says."""
    until = time.monotonic() + START
    while time.monotonic() < until:
        pid = _engine_pid(order) if order.engine else _elsewhere(child)
        if pid or os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return pid
        time.sleep(0.02)
    return 0


def _elsewhere(child: int) -> int:
    """The first process below this one that is in a network of its own; 0: none yet."""
    network = Path("/proc/self/ns/net").stat()
    for pid in caps.descendants(child):
        with suppress(OSError):
            if not os.path.samestat(Path(f"/proc/{pid}/ns/net").stat(), network):
                return pid
    return 0


def _wait(child: int) -> int:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _engine_pid(order: Order) -> int:
    answer = _ask(order, "inspect", "--format", "{{.State.Pid}}", order.name)
    return int(answer) if answer.isdigit() else 0


def _engine_over(order: Order) -> str:
    killed = _ask(order, "inspect", "--format", "{{.State.OOMKilled}}", order.name)
    noted = killed == "true" or Path(order.folder, "oom").exists()
    return caps.MEMORY if noted else ""


def _ask(order: Order, *words: str) -> str:
    try:
        done = subprocess.run([order.engine, *words], capture_output=True, timeout=ASK, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


def _scope_over(scope: str) -> str:
    words = ["systemctl", "--user", "show", "--property", "Result", "--value", scope]
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(words, capture_output=True, timeout=ASK, check=False)
        if done.stdout.strip() == b"oom-kill":
            return caps.MEMORY
    return ""


def _report(order: Order, group: caps.Group | None, over: str) -> None:
    by = "engine" if order.engine else "systemd" if order.scope else "group" if group else "looks"
    facts = {"memory": order.limits.memory, "pids": order.limits.pids}
    record = {"by": by, "over": over, "limit": facts.get(over, 0)}
    with suppress(OSError):
        write_atomically(Path(order.folder, REPORT), json.dumps(record))


def _complain(why: str) -> None:
    os.write(2, f"enclose: {why}\n".encode("utf-8", "replace"))


class Tidier:
    """A process without the run's mark, in a session of its own. It ends when we do."""

    def __init__(self, order: Order, group: caps.Group | None) -> None:
        folders = group.folders if group else {}
        facts = {"engine": order.engine, "name": order.name, "scope": order.scope}
        self._order = json.dumps({**facts, "folders": folders})

    def __enter__(self) -> None:
        env = {n: v for n, v in os.environ.items() if not n.startswith("FLEET_")}
        argv = [*program(), "--tidy", self._order]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=env, cwd="/", start_new_session=True,
        )  # fmt: skip

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def tidy(text: str) -> None:
    """Wait for the end of the one who started us, then remove what it made."""
    for number in RELAYED:
        signal.signal(number, signal.SIG_IGN)
    order = json.loads(text)
    while os.read(0, 1):
        pass
    with suppress(OSError, subprocess.SubprocessError):
        if order["engine"]:
            words = [order["engine"], "rm", "--force", "--volumes", order["name"]]
            subprocess.run(words, capture_output=True, timeout=60, check=False)
        if order["scope"]:
            words = ["systemctl", "--user", "reset-failed", order["scope"]]
            subprocess.run(words, capture_output=True, timeout=ASK, check=False)
    if order["folders"]:
        caps.Group(order["folders"], unified=len(set(order["folders"].values())) == 1).remove()


def program() -> list[str]:
    """The words that start this program, whatever is in the directory that it is started in."""
    root = __file__.removesuffix("/fleet/adapters/isolation/enclose.py")
    boot = f"import sys; sys.path.insert(0, {root!r}); "
    boot += "from fleet.adapters.isolation import enclose; enclose.main(sys.argv[1:])"
    return [sys.executable, "-I", "-S", "-B", "-c", boot]
