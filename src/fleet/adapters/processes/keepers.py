"""Start, watch, write to and end coders under keepers. See `fleet.keeper`."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fleet.base import machine
from fleet.base.files import PLAINLY, open_regular, read_regular, write_atomically, write_once
from fleet.domain.errors import NotFound, Unavailable
from fleet.domain.redaction import is_secret
from fleet.keeper import FORMAT
from fleet.ports import Chunk, Launch, Look, Presence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fleet.adapters.processes.transcript_lines import KnownTranscripts
    from fleet.adapters.tmux.terminals import Terminals
    from fleet.ports import SaidSearch

REMOVED = "removed"  # the file that says why there is no transcript any more
LONGEST_LINE = 1 << 23  # bytes; a longer line comes in pieces, for it may never end
IN_PANE = 0.5  # seconds for a keeper to come up in its pane
ROOT = str(Path(__file__).parents[3])  # where `fleet` is imported from
BOOT = "import sys; sys.path.insert(0, {root!r}); from fleet import keeper; keeper.main()"
# A keeper writes its errors into its log; the pane belongs to its coder.
BOOT_IN_PANE = "import os; os.dup2(os.open({log!r}, os.O_WRONLY | os.O_APPEND), 2); "
NO_INPUT = "{} runs in a terminal, and takes its input there."


class Keepers:
    """`runs` is the folder of run folders; a keeper rings `bell` when its coder has ended.

    Keepers load their code from `root`; some of them run in `terminals`. `before`: words in front
    of a run's command, which isolate it.
    """

    passages: SaidSearch  # given by the one who lets others search

    def __init__(
        self,
        runs: Path,
        *,
        bell: Path | None = None,
        root: Path | None = None,
        terminals: Terminals | None = None,
        before: Callable[[str, Launch], tuple[str, ...]] = lambda _run, _launch: (),
    ) -> None:
        self._before = before
        self._boot = BOOT.format(root=str(root or ROOT))
        self._runs = runs
        self._bell = bell
        self._terminals = terminals
        self._spawned: dict[str, subprocess.Popen[bytes]] = {}
        self._paned: dict[str, float] = {}  # when a terminal was last asked to start one

    def folder(self, run_id: str) -> Path:
        return self._runs / run_id

    def launch(self, run_id: str, launch: Launch) -> None:
        folder = self.folder(run_id)
        if (folder / "keeper.json").exists() or self._starting(run_id):
            return
        if run_id in self._spawned:
            raise self._cannot_start(run_id)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark = os.urandom(16).hex()
        if not (
            folder / "launch.json"
        ).exists():  # the order that was written first is the one that starts
            records = "".join(json.dumps(r) + "\n" for r in _first_input(launch))
            write_once(folder / "input", records)
            order, env = self._order(launch, mark, run_id)
            write_once(folder / "env", json.dumps(env), durable=False)
            write_once(folder / "launch.json", json.dumps(order))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        with os.fdopen(os.open(folder / "keeper.log", flags, 0o600), "ab") as log:
            if session := self._session(run_id):
                self._start_in_pane(run_id, session, launch.cwd)
                return
            self._reap_ended()
            self._spawned[run_id] = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", self._boot, str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                cwd="/",
            )

    def _start_in_pane(self, run_id: str, session: str, cwd: str) -> None:
        """The first process makes the session; others find it, or its keeper."""
        now, last = time.monotonic(), self._paned.get(run_id)
        if last is not None and now - last < IN_PANE:
            return  # it is starting; do not ask tmux about it at every step
        if last is not None and self._panes().has_ended(session) and not self._is_kept(run_id):
            raise self._cannot_start(run_id)
        self._paned[run_id] = now
        folder = self.folder(run_id)
        boot = BOOT_IN_PANE.format(log=str(folder / "keeper.log")) + self._boot
        argv = [sys.executable, "-I", "-S", "-B", "-c", boot, str(folder)]
        self._panes().start(run_id, session, argv, cwd=cwd)

    def _is_kept(self, run_id: str) -> bool:
        return (self.folder(run_id) / "keeper.json").exists()

    def _cannot_start(self, run_id: str) -> Unavailable:
        why = " ".join(_tail(self.folder(run_id) / "keeper.log", 500).split())
        return Unavailable(f"The keeper of {run_id} could not start: {why}")

    def _panes(self) -> Terminals:
        if self._terminals is None:
            from fleet.adapters.tmux.terminals import Terminals  # noqa: PLC0415  # few runs have one
            from fleet.adapters.tmux.tmux import Tmux  # noqa: PLC0415

            self._terminals = Terminals(self._runs, Tmux(self._runs.parent))
        return self._terminals

    def _session(self, run_id: str) -> str:
        """The name of its tmux session; empty when it is not in a terminal."""
        try:
            launch = _json(self.folder(run_id) / "launch.json") or {}
        except ValueError:
            return ""  # an order that cannot be read starts nothing
        return str(launch.get("session", ""))

    def _order(
        self, launch: Launch, mark: str, run_id: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """What stays in the folder, and the environment, which does not: it has keys."""
        in_terminal: dict[str, Any] = {}
        env = {**launch.env, machine.MARK: mark}
        if launch.terminal:
            session = self._panes().tmux.name(run_id, launch.title)
            in_terminal = {"terminal": True, "session": session}
            env["FLEET_RUN_DIR"] = str(self.folder(run_id))
        order = in_terminal | {
            "format": FORMAT,
            "argv": list(launch.argv),
            "before": list(self._before(run_id, launch)),
            "cwd": launch.cwd,
            "env": recorded(env),
            "input": not launch.terminal and (launch.stdin is not None or launch.keep_stdin),
            "mark": mark,
            "bell": str(self._bell or ""),
            "opening": launch.opening,
        }
        return order, env

    def forget_env(self, run_id: str) -> None:
        """Take the environment out of an order that an older version left, once it was read."""
        folder = self.folder(run_id)
        with suppress(OSError, ValueError, TypeError):
            order = _json(folder / "launch.json")
            if order and self._is_kept(run_id) and order["env"] != recorded(order["env"]):
                order["env"] = recorded(order["env"])
                write_atomically(folder / "launch.json", json.dumps(order))

    def _reap_ended(self) -> None:
        """Keepers that were looked at for the last time just before they ended, as those of gates are."""
        for run_id, spawned in list(self._spawned.items()):
            if spawned.poll() is not None and self._is_kept(run_id):
                self._spawned.pop(run_id, None)

    def _starting(self, run_id: str) -> bool:
        spawned = self._spawned.get(run_id)
        return spawned is not None and spawned.poll() is None

    def is_used(self, run_id: str) -> bool:
        return self.folder(run_id).exists()

    def look(self, run_id: str) -> Look:
        folder = self.folder(run_id)
        try:
            if look := self._ended(folder):
                self._starting(run_id)  # reaps our own keeper, so that no zombie is left
                return look
            keeper = _json(folder / "keeper.json")
            if keeper is None:
                return Look(Presence.NEVER)
            if keeper.get("never"):
                return Look(Presence.GONE)
            if machine.is_another_boot(keeper["boot"]):
                return Look(Presence.GONE)
            if self._locked(folder):
                return Look(Presence.ALIVE, began=keeper.get("began"))
            return self._ended(folder) or Look(Presence.GONE, stderr=self.stderr(run_id))
        except (OSError, ValueError, TypeError, KeyError):
            return Look(Presence.UNKNOWN)

    def _ended(self, folder: Path) -> Look | None:
        ended = _json(folder / "exit.json")
        if ended is None:
            return None
        stderr, expired = _tail(folder / "stderr", 4096), bool(ended.get("expired"))
        exceeded, cap = _exceeded(folder)
        return Look(
            Presence.EXITED, ended["code"], stderr, expired=expired, exceeded=exceeded, cap=cap
        )

    def _locked(self, folder: Path) -> bool:
        """Whether a keeper holds its lock, which the kernel releases when a process dies."""
        fd = os.open(folder / "keeper.lock", PLAINLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def tell(self, run_id: str, text: str, *, key: str) -> None:
        if self._session(run_id):
            raise Unavailable(NO_INPUT.format(run_id), fix=f"Send it: fleet prompt {run_id} TEXT")
        self._append(run_id, {"text": text}, key=key)

    def delivered(self, run_id: str) -> list[str]:
        try:
            with open_regular(self.folder(run_id) / "input") as file:
                data = file.read()
        except FileNotFoundError:
            return []
        lines = data[: data.rfind(b"\n") + 1].splitlines()
        keys = (_key(line) for line in lines)
        return [key for key in keys if key]

    def close(self, run_id: str) -> None:
        if self._session(run_id):
            raise Unavailable(NO_INPUT.format(run_id), fix=f"End it: fleet kill {run_id}")
        self._append(run_id, {"close": True}, key="close")

    def stop(self, run_id: str, *, grace: float) -> None:
        try:
            self._append(run_id, {"stop": grace})
        except OSError:  # a full disk must not keep a coder going
            self._stop_by_signal(self.folder(run_id))

    def _stop_by_signal(self, folder: Path) -> None:
        """A keeper stops its coder on SIGTERM. While it holds its lock, the pid is the keeper's."""
        if pid := (_json(folder / "keeper.json") or {}).get("pid"):
            machine.send_signal_if(pid, signal.SIGTERM, lambda: self._locked(folder))

    def opening(self, run_id: str) -> str:
        launch = _json(self.folder(run_id) / "launch.json") or {}
        return str(launch.get("opening", ""))

    def first(self, run_id: str) -> str:
        try:
            with open_regular(self.folder(run_id) / "input") as file:
                record = json.loads(file.readline() or b"{}")
        except (FileNotFoundError, ValueError):
            return ""
        return str(record.get("text", "")) if record.get("n") == 1 else ""

    def _append(self, run_id: str, record: dict[str, Any], *, key: str = "") -> None:
        folder = self.folder(run_id)
        with _open_alone(folder / "input") as fd:
            written, _, torn = os.pread(fd, os.fstat(fd).st_size, 0).rpartition(b"\n")
            if key and json.dumps({"key": key})[1:-1].encode() in written:
                return
            count = len(written.splitlines()) + bool(torn)
            numbered = {"n": count + 1, **({"key": key} if key else {}), **record}
            line = (b"\n" if torn else b"") + json.dumps(numbered).encode() + b"\n"
            if os.write(fd, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / "input"))
        self._ring(folder)

    def _ring(self, folder: Path) -> None:
        with suppress(OSError):
            fd = os.open(
                folder / "wake", os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            )
            try:
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    os.write(fd, b"!")
            finally:
                os.close(fd)

    def end(self, run_id: str) -> bool:
        ended = self._end(run_id)
        if ended and self._session(run_id):
            with suppress(Unavailable):  # its processes are gone; the pane may stay
                self._panes().kill(run_id)
        return ended

    def _end(self, run_id: str) -> bool:
        folder = self.folder(run_id)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        forbidden = self._forbid(folder)
        (folder / "env").unlink(missing_ok=True)  # of a keeper that did not get to start its coder
        if forbidden:
            return True
        look = self.look(run_id)
        if look.presence is Presence.ALIVE:
            self.stop(run_id, grace=0)
            return False
        if look.presence is Presence.UNKNOWN:
            return False
        keeper = _json(folder / "keeper.json") or {}
        if keeper.get("never") or machine.is_another_boot(keeper.get("boot", "")):
            return True
        if look.presence is Presence.EXITED and not machine.can_prove():
            return True  # the keeper ended what was left before it wrote exit.json
        return _end_all(keeper.get("mark", ""), session=keeper.get("pid", 0))

    def _forbid(self, folder: Path) -> bool:
        """Write a record in place of a keeper's, so that none starts. False: one was first."""
        record = {"format": FORMAT, "never": True}
        return write_once(folder / "keeper.json", json.dumps(record))

    def renew(self, run_ids: Sequence[str], *, until: float) -> None:
        for run_id in run_ids:
            folder = self.folder(run_id)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(folder / "lease", f"{until:.3f}")

    def read(self, run_id: str, offset: int, *, limit: int = 1 << 20, final: bool = False) -> Chunk:
        try:
            with open_regular(self.folder(run_id) / "transcript") as file:
                offset = _seek(file, offset)
                data = file.read(limit)
                if data and b"\n" not in data:  # one line longer than the limit is still one line
                    data += file.readline(max(1, LONGEST_LINE - len(data)))
                at_end = not file.peek(1)
        except FileNotFoundError:
            self._check_not_removed(run_id)
            return Chunk((), max(0, offset))
        piece = len(data) >= LONGEST_LINE and b"\n" not in data
        complete = data if piece or (final and at_end) else data[: data.rfind(b"\n") + 1]
        lines = complete.decode("utf-8", "replace").split("\n")
        return Chunk(tuple(lines if lines[-1] else lines[:-1]), offset + len(complete))

    @cached_property
    def _transcripts(self) -> KnownTranscripts:
        from fleet.adapters.processes.transcript_lines import KnownTranscripts  # noqa: PLC0415  # start-up time

        return KnownTranscripts()

    def remove_transcript(self, run_id: str, why: str, *, dry_run: bool = False) -> int:
        """Remove what it printed and was told; the bytes. The folder stays: its number is taken."""
        size = self.transcript_bytes(run_id)
        if not dry_run:
            write_atomically(self.folder(run_id) / REMOVED, why)
            for path in self._printed(run_id):
                path.unlink(missing_ok=True)
        return size

    def transcript_bytes(self, run_id: str) -> int:
        return sum(path.stat().st_size for path in self._printed(run_id) if path.exists())

    def _printed(self, run_id: str) -> list[Path]:
        """What it printed and was told; of one in a terminal, also what tmux recorded."""
        folder = self.folder(run_id)
        recorded = [folder.with_name(f"{run_id}.screen{older}") for older in ("", ".1")]
        names = ("stderr", "input", "screen.txt", "transcript")
        return [*recorded, *(folder / name for name in names)]

    def _check_not_removed(self, run_id: str) -> None:
        """Raise `NotFound` with the reason if the transcript was here once."""
        with suppress(FileNotFoundError):
            with open_regular(self.folder(run_id) / REMOVED) as file:
                why = file.read().decode("utf-8", "replace")
            raise NotFound(
                f"The transcript of {run_id} was removed: {why}.",
                fix=f"`fleet show {run_id.partition('.')[0]}` tells how the run ended.",
                code="transcript_removed",
            )

    def count(self, run_id: str, *, final: bool = False) -> int:
        self._check_not_removed(run_id)
        return self._transcripts.of(self.folder(run_id) / "transcript").count(final=final)

    def lines(
        self, run_id: str, first: int, count: int, *, last: bool = False
    ) -> tuple[int, tuple[str, ...]]:
        self._check_not_removed(run_id)
        lines = self._transcripts.of(self.folder(run_id) / "transcript")
        return lines.read(first, count, last=last)

    def stderr(self, run_id: str, *, tail: int = 4096) -> str:
        return _tail(self.folder(run_id) / "stderr", tail)


def _exceeded(folder: Path) -> tuple[str, int]:
    """The cap that it met, and how much there was, as its container's program noted it.

    The agent can write there, but only to say of itself that its run ended so.
    """
    try:
        note = _json(folder / "caps.json") or {}
        return str(note.get("over", "")), int(note.get("limit", 0))
    except (OSError, ValueError, TypeError):
        return "", 0


def _seek(file: IO[bytes], offset: int) -> int:
    """Go there, or to the first line that begins within the last `-offset` bytes."""
    size = file.seek(0, os.SEEK_END)
    if offset >= 0:
        return file.seek(min(offset, size))  # no system goes as far as a caller may name
    at = file.seek(max(0, size + offset - 1))
    return at + len(file.readline()) if at else 0


def recorded(env: Mapping[str, str]) -> dict[str, str]:
    """What may stay on the disk once a run has begun: whose it is and where, no secret."""
    return {
        name: value
        for name, value in env.items()
        if name.startswith("FLEET_")
        and not is_secret(name)
        and not name.endswith(("_BEARER", "_STORE_URL"))  # the store's address has its password
    }


def _first_input(launch: Launch) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    if launch.stdin is not None:
        records.append({"n": 1, "text": launch.stdin})
    if not launch.keep_stdin:
        records.append({"n": len(records) + 1, "close": True})
    return records


@contextmanager
def _open_alone(path: Path) -> Iterator[int]:
    """Open the file to append whole records, one writer at a time.

    An agent may have put a FIFO there, or lock it: that is an `OSError`.
    """
    from fleet.adapters.home.append import lock  # noqa: PLC0415  # start-up time

    how = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, how)
    except FileNotFoundError as error:
        raise Unavailable(f"{path.parent.name} was never started on this machine.") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        lock(fd, path)
        yield fd
    finally:
        os.close(fd)


def _end_all(mark: str, *, session: int) -> bool:
    """Kill what carries a dead keeper's mark. True when two looks in a row showed nothing left.

    A process of its session without the mark is not provably ours, so it is not killed.
    """
    machine.kill_marked(mark)
    if not machine.can_prove():
        return False
    return not any(machine.marked(mark) or _orphans(session) for _ in range(2))


def _orphans(session: int) -> set[int]:
    """A new leader with the session's number proves that the old session is gone."""
    pids = machine.in_session(session) if session else set()
    return set() if session in pids else pids


def _key(record: bytes) -> str:
    """Empty for a torn record, which a later one follows."""
    try:
        return str(json.loads(record).get("key", ""))
    except (ValueError, AttributeError):
        return ""


def _json(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(read_regular(path))
    except FileNotFoundError:
        return None
    return dict(record)


def _tail(path: Path, size: int) -> str:
    try:
        with open_regular(path) as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
