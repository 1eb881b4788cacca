"""`fleet` without its start: a process that has the modules loaded, and forks for each line typed.

What is forked is a process of its own, with a directory, an environment, pipes and a status of its
own, as the executable's is. Most of what a short line costs is the loading of modules, and tests
type thousands of lines. The first line with each command is typed to the executable itself.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pickle
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

FLEET = str(Path(sys.executable).parent / "fleet")
LANG = "C.UTF-8"
PIPE = 60_000  # bytes that a pipe takes though nobody reads them yet

_typed: set[object] = set()


def type_fleet(words, *, cwd, env, stdin: bytes = b"", timeout: float):
    """Run `fleet` with these words; a subprocess.CompletedProcess with bytes."""
    if len(stdin) < PIPE and _is_warm(words[:1], env):
        return _warm().run([FLEET, *words], cwd=cwd, env=env, stdin=stdin, timeout=timeout)
    given = {"cwd": cwd, "env": env, "input": stdin, "timeout": timeout}
    return subprocess.run([FLEET, *words], capture_output=True, check=False, **given)


def start_fleet(words, *, cwd, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    """A `fleet` that goes on, with nothing on its stdin; its pipes are text."""
    if _is_warm(("started", *words[:1]), env):
        return _warm().start([FLEET, *words], cwd, env, stdout, stderr)
    given = {"cwd": cwd, "env": env, "stdout": stdout, "stderr": stderr, "encoding": "utf-8"}
    return subprocess.Popen([FLEET, *words], stdin=subprocess.DEVNULL, **given)


def _is_warm(name, env) -> bool:
    """It is not the first of its name, and nothing here matters to an interpreter that starts."""
    known = tuple(name) in _typed
    _typed.add(tuple(name))
    plain = env.get("LANG") == LANG and not any(n.startswith(("PYTHON", "LC_")) for n in env)
    return known and plain


@cache
def _warm() -> Warm:
    return Warm()


class Warm:
    """The side of whoever types."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair()
        self._lock = threading.Lock()
        env = {n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "LC_", "COV_"))}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                env=env | {"LANG": LANG},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self.close)

    def close(self) -> None:
        self._orders.close()
        self._process.wait(20)

    def run(self, argv, *, cwd, env, stdin: bytes, timeout: float):
        """As subprocess.run does it, with `input` and `capture_output`."""
        given, give = os.pipe()
        with os.fdopen(give, "wb", buffering=0) as words:
            process = self._fork(argv, cwd, env, given, subprocess.PIPE, subprocess.PIPE)
            with suppress(BrokenPipeError):
                words.write(stdin)
        with process.stdout, process.stderr:
            try:
                said = process.read(timeout)
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(argv, code, *said)

    def start(self, argv, cwd, env, stdout, stderr) -> Started:
        return self._fork(argv, cwd, env, os.open(os.devnull, os.O_RDONLY), stdout, stderr)

    def _fork(self, argv, cwd, env, stdin: int, stdout, stderr) -> Started:
        """The first of these files is closed; a pipe's other end is the process's to read."""
        with ExitStack() as stack:
            stack.callback(os.close, stdin)
            (out, said), (err, complained) = (_ends(stack, to) for to in (stdout, stderr))
            status, theirs = socket.socketpair()
            stack.enter_context(theirs)
            order = pickle.dumps((argv, os.fspath(cwd), env))
            with self._lock:
                fds = [stdin, out, err, theirs.fileno()]
                socket.send_fds(self._orders, [len(order).to_bytes(8, "big")], fds)
                self._orders.sendall(order)
        return Started(argv, status, said, complained)


def _ends(stack: ExitStack, to) -> tuple[int, object]:
    """The end that is given away, and the one that is read if it is a pipe."""
    if to != subprocess.PIPE:
        return to.fileno(), None
    told, tells = os.pipe()
    stack.callback(os.close, tells)
    return tells, os.fdopen(told, encoding="utf-8")


class Started:
    """What was forked, with the part of subprocess.Popen that is used here."""

    def __init__(self, argv, status: socket.socket, stdout, stderr) -> None:
        self.args, self.stdout, self.stderr = argv, stdout, stderr
        self.returncode: int | None = None
        self._status = status
        self.pid = self._number()

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = self._number()
            self._status.close()
        return self.returncode

    def _number(self) -> int:
        said = self._status.recv(8)
        assert said, "the process that forks has died"
        return int.from_bytes(said, "big", signed=True)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        with self.stdout, self.stderr:
            said = self.read(timeout)
        self.wait(timeout)
        out, err = (each.decode() for each in said)
        return out, err

    def read(self, timeout: float | None = None) -> list[bytes]:
        """All that comes until both pipes are closed."""
        end = time.monotonic() + timeout if timeout is not None else None
        found = {each.fileno(): b"" for each in (self.stdout, self.stderr)}
        with selectors.DefaultSelector() as waiting:
            for fd in found:
                waiting.register(fd, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(max(0.0, end - time.monotonic()) if end else None)
                if not ready:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                for key, _ in ready:
                    data = os.read(key.fd, 65536)
                    found[key.fd] += data
                    if not data:
                        waiting.unregister(key.fd)
        return list(found.values())


class Loaded:
    """The side that has the modules: it forks, and tells whoever typed what became of it."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._going: dict[int, tuple[int, socket.socket]] = {}
        self._poll = select.poll()
        self._poll.register(orders, select.POLLIN)

    def serve(self) -> None:
        """Return in each child, once it has become what was typed."""
        while True:
            for fd, _ in self._poll.poll():
                if fd != self._orders.fileno():
                    self._tell(fd)
                elif self._fork():
                    return

    def _tell(self, fd: int) -> None:
        pid, told = self._going.pop(fd)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with told, suppress(OSError):
            told.sendall(code.to_bytes(8, "big", signed=True))
        self._poll.unregister(fd)
        os.close(fd)

    def _fork(self) -> bool:
        head, fds, _, _ = socket.recv_fds(self._orders, 8, 4)
        if not head:
            os._exit(0)
        size, order = int.from_bytes(head, "big"), b""
        while len(order) < size:
            order += self._orders.recv(size - len(order))
        *stdio, last = fds
        told = socket.socket(fileno=last)
        pid = os.fork()
        if not pid:
            told.close()
            self._let_go()
            become(stdio, *pickle.loads(order))
            return True
        told.sendall(pid.to_bytes(8, "big"))
        for fd in stdio:
            os.close(fd)
        pidfd = os.pidfd_open(pid)
        self._going[pidfd] = (pid, told)
        self._poll.register(pidfd, select.POLLIN)
        return False

    def _let_go(self) -> None:
        self._orders.close()
        for fd, (_, told) in self._going.items():
            told.close()
            os.close(fd)


def load() -> None:
    from fleet import cli
    from fleet.app.coders import preload

    preload()
    for module in pkgutil.walk_packages(cli.__path__, "fleet.cli."):
        importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def become(stdio: list[int], argv: list, cwd: str, env: dict[str, str]) -> None:
    for number, fd in enumerate(stdio):
        os.dup2(fd, number)
        os.close(fd)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        old = getattr(sys, name)
        given = {"encoding": old.encoding, "errors": old.errors, "closefd": False}
        new = os.fdopen(old.fileno(), mode, **given)
        new.reconfigure(line_buffering=name == "stderr")
        setattr(sys, name, new)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [os.fsdecode(word) for word in argv]


def leave(status: int) -> None:
    """As an interpreter ends, but for taking all the modules apart, which takes longest."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    load()
    Loaded(socket.socket(fileno=int(sys.argv[1]))).serve()
    from fleet.cli.main import main

    leave(main())
