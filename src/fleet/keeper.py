"""The tiny process around one coder. It outlives the supervisor that started it.

    keeper RUN_FOLDER

Its folder is all it knows (format 1):

    launch.json   what to start: argv (with words `before` it that isolate it), cwd, whether there is input, which FIFO to wake
    env           the coder's environment, with its keys; removed once the coder has it
    keeper.json   made once: by the keeper that claims the run, or to forbid that any starts
    keeper.lock   held while the keeper lives; the kernel releases it, so it is always true
    input         numbered records, appended by others: text for the coder, or a request to stop it
    input.pos     the number of the last record that the keeper carried out
    transcript the coder's standard output, which it writes itself
    stderr        its standard error, likewise
    lease         seconds since boot at which to end unless renewed; absent: no lease
    exit.json     how the coder ended, written last
    wake          a FIFO: a process that appended to `input` writes to it, to wake the keeper
    keeper.log    what went wrong with the keeper itself

Two keepers may be started for one run: one makes `keeper.json`, the other exits.

In a terminal the keeper is the pane's command, and its coder is in the foreground: it reads and
writes the pane. Then `transcript` is what the coder's hooks append, and `stderr` holds only why the
coder could not be started.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
import time

from fleet.base import machine
from fleet.base.files import open_regular, read_regular, write_atomically, write_once
from fleet.base.lean import dumps, loads, signal, suppress

TYPE_CHECKING = False  # `typing` would be a fifth of a keeper's start
if TYPE_CHECKING:
    from typing import IO, Any

FORMAT = 1
SWEEP_GRACE = 2.0  # seconds for processes that a coder leaves behind
RESERVE = 4096  # bytes set aside for exit.json, so that a full disk cannot swallow an ending
LOOK = 1.0  # seconds between looks when nothing wakes us
HANGUP_GRACE = 5.0  # seconds for a coder whose terminal is gone
TYPED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
FORSAKEN = 60.0  # seconds without our folder, the only way to reach us, after which we stop


class Keeper:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.launch = loads(self._read("launch.json"))
        self.mark: str = self.launch["mark"]
        self.terminal: bool = self.launch.get("terminal", False)
        self.child = 0
        self.env: dict[str, str] = {}
        self.status: int | None = None
        self.stdin = -1
        self.pending = b""
        self.done = self.noted = 0  # the last input record carried out, and written down
        self.offset = 0
        self.kill_at = 0.0  # when a stop turns into a kill; 0: no stop was requested
        self.closing = False
        self.alone_since = 0.0  # when our folder was first found missing; 0: it is there
        self.lease: float | None = None  # as it was last read
        self.expired = False  # the lease ended the coder

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _read(self, name: str) -> str:
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def claim(self) -> bool:
        """Whether this process is the one that keeps the run."""
        self.lock = os.open(self.path("keeper.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        for _ in range(100):  # a supervisor that looks at the run holds it for microseconds
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.01)
        else:
            return False
        record = {"format": FORMAT, "pid": os.getpid(), "boot": machine.boot_id()}
        record |= {"mark": self.mark, "began": machine.since_boot()}
        if self.terminal:
            record["pane"] = os.environ.get("TMUX_PANE", "")
        return write_once(self.path("keeper.json"), dumps(record))

    def start(self) -> None:
        self._reserve_exit()
        self.wake = _fifo(self.path("wake"))
        self.signals, wakeup = os.pipe()
        for fd in (self.signals, wakeup):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self.stop(5.0))
        if self.terminal:
            signal.signal(signal.SIGHUP, lambda *_: self.hang_up())
        self.adopts = machine.adopt_orphans()
        if self.lease_is_over():  # it expired before we started
            self.status, self.expired = -signal.SIGKILL, True
        elif self.terminal and not _has_terminal():  # it closed before we started
            self.status = -signal.SIGHUP
        else:
            self._spawn()

    def _spawn(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        out = os.open(self.path("transcript"), flags, 0o600)
        err = os.open(self.path("stderr"), flags, 0o600)
        self.env = self._read_env()
        feed, self.stdin = os.pipe() if self.launch["input"] else (os.open(os.devnull, 0), -1)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGHUP])
        pid = os.fork()
        if pid == 0:
            self._become_coder(feed, out, err)
        self.child = pid
        with suppress(OSError):  # the copy has read it
            os.unlink(self.path("env"))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGHUP])
        for fd in (feed, out, err):
            os.close(fd)
        if self.stdin >= 0:
            os.set_blocking(self.stdin, False)

    def _become_coder(self, feed: int, out: int, err: int) -> None:
        path = self.launch["argv"][0]
        try:
            os.setpgid(0, 0)
            if self.terminal:
                os.tcsetpgrp(0, os.getpid())  # SIGTTOU is ignored until here
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, *TYPED):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it; a program expects it
            # A signal that came meanwhile is delivered here.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGHUP])
            if not os.path.isdir(self.launch["cwd"]):
                path = self.launch["cwd"]
            os.chdir(self.launch["cwd"])
            before = self.launch.get("before", [])
            argv, env = [*before, *self.launch["argv"]], self._environment()
            if (
                before
            ):  # the isolating program waits for the coder and must survive the coder's signals
                for number in (signal.SIGTERM, signal.SIGHUP, *TYPED):
                    signal.signal(number, signal.SIG_IGN)
            os.environ["PATH"] = env.get("PATH", os.defpath)
            for target, fd in enumerate((0, 0, 0) if self.terminal else (feed, out, err)):
                os.dup2(fd, target)
            os.execvpe(argv[0], argv, env)  # noqa: S606  # argv is a list; there is no shell
        except BaseException as error:  # noqa: BLE001  # this is a copy of the keeper: it ends here
            why = (isinstance(error, OSError) and error.strerror) or error
            missing = isinstance(error, FileNotFoundError)
            if missing and path != self.launch["cwd"]:
                why = f"{why}. `fleet coders` says which programs are found."
            os.write(err, f"fleet: {path}: {why}\n".encode("utf-8", "replace"))
            os._exit(127 if missing else 126)

    def _read_env(self) -> dict[str, str]:
        """Return the coder's environment; older versions of Fleet wrote it into `launch.json`."""
        try:
            env: dict[str, str] = loads(self._read("env"))
        except FileNotFoundError:
            env = self.launch["env"]
        return env

    def _environment(self) -> dict[str, str]:
        """The coder's environment, with the TERM of this pane, which only tmux knows."""
        env = self.env
        return env | {"TERM": os.environ.get("TERM", "screen")} if self.terminal else env

    def run(self) -> None:
        while self.status is None:
            self._take_input()
            self._feed()
            writing = [self.stdin] if self.pending and self.stdin >= 0 else []
            self._note()
            ready, _, _ = select.select([self.signals, self.wake], writing, [], self._patience())
            for fd in ready:
                _drain(fd)
            self._reap()
            self._mind_deadlines()

    def _patience(self) -> float:
        if self.kill_at:
            return max(0.05, min(LOOK, self.kill_at - time.monotonic()))
        return LOOK

    def _take_input(self) -> None:
        """Carry out the records appended since; an unfinished last line is read next time."""
        try:
            with open_regular(self.path("input")) as file:
                file.seek(self.offset)
                data = file.read()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        for line in whole.splitlines():
            with suppress(ValueError, TypeError, AttributeError, KeyError):
                self._carry_out(loads(line))  # a record torn by its writer's crash is skipped

    def _carry_out(self, record: dict[str, Any]) -> None:
        number = int(record["n"])
        if "text" in record:
            self.pending += record["text"].encode("utf-8", "surrogateescape")
        if record.get("close"):
            self.closing = True
        if "stop" in record:
            self.stop(float(record["stop"]))
        self.done = number

    def _feed(self) -> None:
        if self.stdin < 0:
            return
        try:
            while self.pending:
                self.pending = self.pending[os.write(self.stdin, self.pending) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.pending = b""
            self.closing = True
        if self.closing:
            os.close(self.stdin)
            self.stdin = -1

    def _note(self) -> None:
        """Write `input.pos` once the coder has all input. On a full disk only this note is lost."""
        if self.done == self.noted or (self.pending and self.stdin >= 0):
            return
        with suppress(OSError):
            write_atomically(self.path("input.pos"), str(self.done), durable=False)
            self.noted = self.done

    def stop(self, grace: float) -> None:
        if not self.kill_at:
            self._signal_group(signal.SIGTERM)
        self.kill_at = min(self.kill_at or 1e18, time.monotonic() + grace)

    def hang_up(self) -> None:
        """Our terminal is gone. The kernel sends SIGHUP only to the session's leader, us: pass it on."""
        if not self.kill_at:
            self._signal_group(signal.SIGHUP)
            self._signal_group(signal.SIGCONT)
        self.kill_at = min(self.kill_at or 1e18, time.monotonic() + HANGUP_GRACE)

    def _mind_deadlines(self) -> None:
        if self.kill_at and time.monotonic() >= self.kill_at:
            self._signal_group(signal.SIGKILL)
        if self.status is None and self.lease_is_over():
            self.expired = True
            self._signal_group(signal.SIGKILL)  # another host may start the task now: no grace left
        if self._is_forsaken() and not self.kill_at:
            self.stop(5.0)

    def _is_forsaken(self) -> bool:
        try:
            os.stat(self.path("keeper.json"))
        except FileNotFoundError:
            self.alone_since = self.alone_since or time.monotonic()
            return time.monotonic() - self.alone_since > FORSAKEN
        except OSError:
            return False
        self.alone_since = 0.0
        return False

    def lease_is_over(self) -> bool:
        with suppress(OSError, ValueError):  # no lease, or unreadable now: the last one read counts
            self.lease = float(read_regular(self.path("lease")))
        return self.lease is not None and machine.since_boot() >= self.lease

    def _signal_group(self, number: int) -> None:
        """The coder is our child and not reaped yet, so its pid cannot be another process's."""
        if self.status is None and self.child:
            with suppress(OSError):  # a zombie's group on macOS, or a coder that became root
                try:
                    os.killpg(self.child, number)
                except ProcessLookupError:
                    os.kill(self.child, number)  # forked, but not yet leader of its group

    def _reap(self) -> bool:
        """Reap ended children. Return whether no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | (os.WUNTRACED if self.terminal else 0))
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if os.WIFSTOPPED(status):
                self._resume(pid)
            elif pid == self.child:
                self.status = os.waitstatus_to_exitcode(status)

    def _resume(self, pid: int) -> None:
        """Continue a stopped coder: its terminal has no shell in which a person could type `fg`."""
        if pid == self.child:
            time.sleep(0.05)  # one that stops again and again must not keep us busy
            with suppress(OSError):
                os.tcsetpgrp(0, self.child)
            self._signal_group(signal.SIGCONT)

    def sweep(self) -> None:
        """End processes the coder left: in our session, with our mark, or our children by now."""
        until = time.monotonic() + SWEEP_GRACE
        number, pause, me = signal.SIGTERM, 0.02, os.getpid()
        session = me if os.getsid(0) == me else 0
        while True:
            childless = self._reap()
            if childless and self.adopts and not machine.has_proc():
                return  # without /proc a look takes seconds, and every orphan becomes our child
            pids = machine.in_session(session) if session else set()
            pids |= machine.marked(self.mark) | (set() if childless else machine.children(me))
            pids -= {me}
            if not pids:
                return
            for pid in pids:
                machine.send_signal(pid, number, mark=self.mark, session=session, parent=me)
            if time.monotonic() > until:
                number, pause = signal.SIGKILL, min(2 * pause, 1.0)  # some cannot be killed: wait
            time.sleep(pause)

    def _reserve_exit(self) -> None:
        with _open_private(self.path("exit.tmp")) as file:
            file.write(b" " * RESERVE)
            file.flush()
            os.fsync(file.fileno())

    def finish(self) -> None:
        code = self.status if self.status is not None else -signal.SIGKILL
        record = {"format": FORMAT, "code": code, "at": time.time_ns() // 1000}
        if self.expired:
            record["expired"] = True
        fd = os.open(self.path("exit.tmp"), os.O_RDWR | os.O_NOFOLLOW)  # an agent may write here
        with os.fdopen(fd, "r+b") as file:
            file.write(dumps(record).encode().ljust(RESERVE))
            file.flush()
            os.fsync(file.fileno())
        os.rename(self.path("exit.tmp"), self.path("exit.json"))
        _ring(self.launch.get("bell", ""))


def _has_terminal() -> bool:
    try:
        os.tcgetpgrp(0)
    except OSError:
        return False
    return True


def _open_private(path: str) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _fifo(path: str) -> int:
    with suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def _drain(fd: int) -> None:
    with suppress(BlockingIOError):
        while os.read(fd, 4096):
            pass


def _ring(path: str) -> None:
    with suppress(OSError):  # no process reads it; the ending is on disk
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, b"!")
        os.close(fd)


def main() -> None:
    for number in (signal.SIGHUP, *TYPED):
        signal.signal(number, signal.SIG_IGN)  # before others can find us
    keeper = Keeper(sys.argv[1])
    if keeper.claim():
        keeper.start()
        _ring(keeper.launch.get("bell", ""))
        keeper.run()
        keeper.sweep()
        keeper.finish()
        if keeper.terminal:  # its pane shows the exit status
            sys.exit(keeper.status if (keeper.status or 0) >= 0 else 128 - (keeper.status or 0))


if __name__ == "__main__":
    main()
