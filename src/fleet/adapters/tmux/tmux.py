"""tmux: a server of our own for each home, so that fleet never touches the user's sessions.

The server keeps the environment of the process that started it, so it gets nearly none: what a run
needs comes from its keeper. Fleet finds a session by the run id on its window, and addresses a pane
by tmux's own number (`%3`), never by a name that could match another.
"""

from __future__ import annotations

import os
import re
import shlex
import time
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.machine.digest import digest_of
from fleet.adapters.processes import run as process
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path("/")
TMUX_SECONDS = 10.0  # for one answer of a local server
PREFIX = "fleet_"
SIZE = (200, 50)
HISTORY = 50_000  # lines
READABLE = 40  # characters of a branch in the name of its session
RUN = "@fleet_run"  # an option on the window of a run, which holds its id
RECORDED = 4 << 20  # bytes of a screen's output in one file; an older file has as many
# `dd` writes at once what it reads. The loop ends when the file has not grown.
RECORD = """umask 077; f={log}; o=-1
while dd bs=16384 count=512 >>"$f" 2>/dev/null; n=$(($(wc -c <"$f"))); [ "$n" -ne "$o" ]
do o=$n; [ "$n" -lt {most} ] || {{ mv -f "$f" "$f.1"; o=-1; }}; done"""
INSTALL = "Install tmux 3.2 or newer."
AGAIN = ("server exited", "no server running", "lost server", "error connecting")
DRAWN = "0.005"  # seconds in which most programs show what was pasted
KEYS = ("Enter", "Escape", "C-c", "C-u", "C-g", "1", "2", "3", "y", "p", "a")
PANE = (
    "#{pane_id} #{session_id} #{pane_pid} #{pane_dead} x#{pane_dead_status} x#{pane_dead_signal} "
    "#{cursor_x} #{cursor_y} #{session_attached} x#{@fleet_run} #{session_name}"
)
LEAVE = "C-q"
OPTIONS: tuple[tuple[str, ...], ...] = (
    ("set-option", "-s", "escape-time", "20"),  # else the user's Escape key hangs for half a second
    ("set-option", "-g", "default-terminal", "screen-256color"),
    ("set-option", "-g", "history-limit", str(HISTORY)),
    ("set-option", "-g", "status-interval", "0"),
    ("set-option", "-g", "status-left-length", "80"),
    ("set-option", "-g", "status-left", " #{session_name} "),
    # Without a prefix: inside the user's own tmux, C-b d would detach that one.
    ("bind-key", "-n", LEAVE, "detach-client"),
    ("set-option", "-g", "status-right", f" {LEAVE} leaves it running "),
    ("set-option", "-g", "window-status-format", ""),
    ("set-option", "-g", "window-status-current-format", ""),
)


class Pane(NamedTuple):
    """One pane of ours, as it is now."""

    id: str
    session_id: str
    pid: int
    dead: bool
    status: int | None  # of its command, if tmux knows it; negative: the signal that ended it
    cursor: tuple[int, int]  # column and line, from the upper left
    attached: int  # how many people look at it
    run: str
    session: str


class Tmux:
    def __init__(self, home: Path, *, prefix: str = PREFIX) -> None:
        path = os.path.realpath(home).encode("utf-8", "surrogateescape")
        self.socket = f"fleet-{digest_of(path)[:10]}"
        self._prefix = _legal(prefix)
        self._version = ""

    def name(self, run_id: str, readable: str = "") -> str:
        """The name of a run's session. The id makes it unique, the rest is for people."""
        words = _legal(readable)[:READABLE].strip("-_")
        return self._prefix + "_".join(word for word in (_legal(run_id), words) if word)

    def version(self) -> str:
        """The version as tmux writes it: `3.3a`. Raise `Unavailable` when tmux is not installed."""
        self._version = self._version or self._run(["-V"]).strip().partition(" ")[2]
        return self._version

    def start(self, session: str, argv: Sequence[str], *, run: str, cwd: str, log: str) -> None:
        """Start a program in a session of that name, unless the session exists."""
        target = f"={session}:"
        pipe = RECORD.format(log=shlex.quote(log), most=RECORDED).replace("%", "%%")
        columns, lines = map(str, SIZE)
        create = ["new-session", "-d", "-s", session, "-x", columns, "-y", lines]
        commands = [
            ["start-server"],
            *OPTIONS,
            [*create, "-c", _plain(cwd), "--", *argv],
            ["set-option", "-w", "-t", target, "remain-on-exit", "on"],
            ["set-option", "-w", "-t", target, "allow-rename", "off"],
            ["set-option", "-w", "-t", target, RUN, run],
            ["pipe-pane", "-t", target, "-o", _plain(pipe)],
        ]
        try:
            self._ask(_chain(commands), tries=20)
        except _NoSuchError as error:
            if "duplicate session" not in str(error):
                raise Unavailable(f"tmux started no session for {run}: {error}") from None

    def panes(self) -> list[Pane]:
        """The panes of all runs, in one call; none when there is no server."""
        try:
            output = self._ask(["list-panes", "-a", "-F", PANE])
        except _NoSuchError:
            return []
        panes = [_pane(line) for line in output.splitlines()]
        return [pane for pane in panes if pane.run]

    def look(self, pane: str) -> Pane | None:
        """The pane; None when there is no such pane."""
        try:
            return _pane(self._ask(["display-message", "-p", "-t", pane, PANE]))
        except _NoSuchError:
            return None

    def capture(
        self, pane: str, *, history: int = 0, colours: bool = False
    ) -> tuple[Pane, str] | None:
        """A pane and its text; with so many lines from before, wrapped lines are joined."""
        back = ["-J", "-S", str(-history)] if history else []
        back += ["-e"] if colours else []
        words = ["display-message", "-p", "-t", pane, f"#{{version}} {PANE}", ";"]
        try:
            output = self._ask([*words, "capture-pane", "-p", "-t", pane, *back])
        except _NoSuchError:
            return None
        first, _, text = output.partition("\n")
        self._version, _, facts = first.partition(" ")
        return _pane(facts), _trimmed(text)

    def captures(self, panes: Sequence[str]) -> dict[str, tuple[Pane, str]]:
        """Many panes in one call, without those that are gone meanwhile."""
        existing = {pane.id for pane in self.panes()} if panes else set()
        wanted = [pane for pane in panes if pane in existing]
        if not wanted:
            return {}
        mark = f"fleet-{os.getpid()}-{time.monotonic_ns()} "  # a line that no screen shows
        looks = [["display-message", "-p", "-t", p, mark + PANE] for p in wanted]
        texts = [["capture-pane", "-p", "-t", p] for p in wanted]
        try:
            output = self._ask(_chain([c for both in zip(looks, texts, strict=True) for c in both]))
        except _NoSuchError:
            return {}
        captures = {}
        for part in output.split(mark)[1:]:
            first, _, text = part.partition("\n")
            pane = _pane(first)
            captures[pane.id] = pane, _trimmed(text)
        return captures

    def paste(self, pane: str, data: bytes) -> tuple[Pane, str] | None:
        """Paste byte for byte, bracketed where the program asked for it. None: the pane is dead.

        Returns the pane and its text a moment later, when most programs have drawn it. The server
        itself must check whether the pane is dead: tmux 3.3 crashes, with every session, when it
        pastes into a dead one.
        """
        name = f"fleet-{os.getpid()}-{time.monotonic_ns()}"
        flags = "-p -r -d -S" if _at_least(self.version(), 3, 7) else "-p -r -d"
        dead = f"delete-buffer -b {name} ; display-message -p dead"
        alive = f"paste-buffer {flags} -b {name} -t {pane}"
        commands = [
            ["load-buffer", "-b", name, "-"],
            ["if-shell", "-F", "-t", pane, "#{pane_dead}", dead, alive],
            ["run-shell", "-d", DRAWN],
            ["display-message", "-p", "-t", pane, PANE],
            ["capture-pane", "-p", "-t", pane],
        ]
        try:
            output = self._ask(_chain(commands), data=data)
        except _NoSuchError:
            return None
        first, _, text = output.partition("\n")
        return None if first == "dead" else (_pane(first), _trimmed(text))

    def press(self, pane: str, key: str) -> bool:
        """Press one of `KEYS`, after leaving tmux's scroll mode. False: the pane is dead."""
        mode = ["if-shell", "-F", "-t", pane, "#{pane_in_mode}", f"send-keys -t {pane} -X cancel"]
        sending = f"send-keys -t {pane} {KEYS[KEYS.index(key)]}"
        sent = ["if-shell", "-F", "-t", pane, "#{pane_dead}", "display-message -p dead", sending]
        try:
            return not self._ask([*mode, ";", *sent])
        except _NoSuchError:
            return False

    def kill(self, session: str) -> None:
        """End a session by its id (`$3`) or its whole name; nothing happens when there is none."""
        target = session if session.startswith("$") else f"={session}"
        try:
            self._ask(["kill-session", "-t", target])
        except _NoSuchError:
            return

    def attach_argv(self, session: str, env: Mapping[str, str]) -> list[str]:
        """The command to attach to this session from a terminal with this environment."""
        inside = os.path.basename(env.get("TMUX", "").partition(",")[0])  # noqa: PTH119  # a string
        verb = "switch-client" if inside == self.socket else "attach-session"
        hide = [f"-u{name}" for name in ("TMUX", "TMUX_TMPDIR") if env.get(name)]
        front = ["env", *hide] if hide and verb == "attach-session" else []
        return [*front, "tmux", "-u", "-L", self.socket, verb, "-t", f"={session}"]

    def line(self, *words: str) -> str:
        """A command that the user can type."""
        front = "TMUX_TMPDIR= " if os.environ.get("TMUX_TMPDIR") else ""
        return front + shlex.join(["tmux", "-L", self.socket, *words])

    def _ask(self, words: Sequence[str], *, data: bytes = b"", tries: int = 3) -> str:
        """Tries again when the server is ending with its last session, then starts a new one."""
        for tries_left in reversed(range(tries)):
            try:
                return self._run(["-u", "-L", self.socket, "-f", os.devnull, *words], data=data)
            except _NoSuchError as error:
                starts = "start-server" in words
                if not tries_left or not starts or not str(error).startswith(AGAIN):
                    raise
                time.sleep(0.02 * (tries - tries_left))
        raise AssertionError

    def _run(self, words: Sequence[str], *, data: bytes = b"") -> str:
        try:
            done = process.run(
                ["tmux", *words], ROOT, env=_environment(), timeout=TMUX_SECONDS, stdin=data,
                in_memory=True, ends_with_us=True,
            )  # fmt: skip
        except process.Missing:
            raise Unavailable("tmux is not installed.", fix=INSTALL, code="no_tmux") from None
        except process.TooLate:
            raise Unavailable(
                f"tmux did not answer within {TMUX_SECONDS:.0f} s.",
                fix=f"Look at it: {self.line('list-sessions')}",
            ) from None
        if done.status:
            raise _NoSuchError(done.err.strip())
        return done.out


class _NoSuchError(Exception):
    """tmux's error message."""


def _environment() -> dict[str, str]:
    """The environment of the tmux server: no secrets, and no mark of the run that started it."""
    inherited = {
        name: os.environ[name] for name in ("HOME", "USER", "LOGNAME") if name in os.environ
    }
    path = os.environ.get("PATH", os.defpath)
    return {**inherited, "PATH": path, "SHELL": "/bin/sh", "LC_ALL": "C.UTF-8", "TERM": "screen"}


def _legal(text: str) -> str:
    """Letters, digits, `_` and `-`: tmux changes dots and colons, and parses other characters."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_]+", "-", plain)


def _plain(text: str) -> str:
    """Escaped for arguments in which tmux expands `#{…}`."""
    return text.replace("#", "##")


def _chain(commands: Sequence[Sequence[str]]) -> list[str]:
    """Commands for one call. A `;` at the end of a word would end its command: escape it."""
    words: list[str] = []
    for command in commands:
        words += [";"] if words else []
        words += [f"{word[:-1]}\\;" if word.endswith(";") else word for word in command]
    return words


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n")


def _at_least(version: str, *wanted: int) -> bool:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2]) >= wanted


def _pane(line: str) -> Pane:
    pane, sid, pid, dead, code, killed, x, y, attached, run, name = line.rstrip("\n").split(" ", 10)
    status = int(code[1:]) if code[1:] else (-int(killed[1:]) if killed[1:].isdigit() else None)
    return Pane(
        pane, sid, int(pid), dead == "1", status, (int(x), int(y)), int(attached), run[1:], name
    )
