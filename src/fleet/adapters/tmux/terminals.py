"""The terminals of runs: each is a pane whose command is the run's keeper.

A pane belongs to a run when the keeper recorded it and runs in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fleet.adapters.machine.digest import digest_of
from fleet.adapters.tmux.prompt_box import holds
from fleet.adapters.tmux.screens import always_on, permission_on, program_of, read_screen, sheet_of
from fleet.adapters.tmux.tmux import KEYS, Tmux
from fleet.base.files import read_regular, write_atomically
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, Refused, Unavailable
from fleet.ports import Screen, ScreenState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fleet.adapters.tmux.tmux import Pane

PANE_ID = re.compile(r"%[0-9]+")
MAX_PROMPT_BYTES = 1_000_000
END_OF_PASTE = b"\x1b[201~"  # what follows it would be read as keys
ASKING_SECONDS = (
    3.0  # until a dialog shows whose program said that it asks; longer on a busy machine
)
DRAWING_SECONDS = 0.5  # seconds until pasted text shows; some programs wait before they draw
JUST = 0.05  # seconds
LOOK_SECONDS = 0.01
ERASING = 2.0  # seconds to empty a prompt box, line by line
ERASE_EVERY = 0.1  # seconds; text that was just sent may still show for a moment
EDITING = 5.0  # seconds for the program's editor, which is a few lines of `sh`
EDITOR = "FLEET_EDITOR"  # the user's own editor, in a program whose $EDITOR is fleet's
PERMIT_TRIES, PERMIT_SECONDS = 5, 1.0  # for a dialog to take a key
TURN = 30.0  # seconds to wait while another process types


class TerminalRecord(NamedTuple):
    """What the folder of a run records of its terminal."""

    session: str
    program: str
    pid: int  # of its keeper; 0: it has not started
    pane: str
    editor: bool = False  # its $EDITOR is fleet's


class ScreenSight(NamedTuple):
    at: float  # by the monotonic clock
    screen: Screen


class Terminals:
    """`runs` is the folder of run folders."""

    def __init__(self, runs: Path, tmux: Tmux) -> None:
        self._runs = runs
        self.tmux = tmux
        self._ready: dict[str, ScreenSight] = {}  # runs found ready, until fleet types into them

    def start(self, run_id: str, session: str, argv: Sequence[str], *, cwd: str) -> None:
        """Start a keeper as a session's command; does nothing when it was started before."""
        log = self._runs / f"{run_id}.screen"  # beside its folder, where its agent may leave links
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        self.tmux.start(session, argv, run=run_id, cwd=cwd, log=str(log))

    def has_ended(self, session: str) -> bool | None:
        """Whether the command of this session has ended; None when there is no such session."""
        pane = self._named(session)
        return None if pane is None else pane.dead

    def kill(self, run_id: str) -> None:
        """Save the text of the screen, then end the session."""
        self._ready.pop(run_id, None)
        terminal = self._terminal(run_id)
        pane = self._named(terminal.session) if terminal.session else None
        if pane is None or pane.run != run_id:
            return
        if (capture := self.tmux.capture(pane.id, history=10_000)) is not None:
            write_atomically(self._runs / run_id / "screen.txt", capture[1] + "\n")
        self.tmux.kill(pane.session_id)

    def _named(self, session: str) -> Pane | None:
        return next((pane for pane in self.tmux.panes() if pane.session == session), None)

    def screen(self, run_id: str, *, history: int = 0) -> Screen:
        terminal = self._terminal(run_id)
        capture = self.tmux.capture(terminal.pane, history=history) if terminal.pane else None
        if capture is None or not _is_of(capture[0], run_id, terminal):
            raise _no_terminal(run_id)
        return self._screen(run_id, terminal, *capture, history=history)

    def screens(self, run_ids: Iterable[str]) -> dict[str, Screen]:
        """The screens of the runs that have a terminal now: many at once cost hardly more than one."""
        terminals = {run_id: self._terminal(run_id) for run_id in run_ids}
        captures = self.tmux.captures(
            [terminal.pane for terminal in terminals.values() if terminal.pane]
        )
        return {
            run_id: self._screen(run_id, terminal, *captures[terminal.pane])
            for run_id, terminal in terminals.items()
            if terminal.pane in captures and _is_of(captures[terminal.pane][0], run_id, terminal)
        }

    def coloured(self, run_id: str, *, history: int = 0) -> str:
        """The text of its screen with the escape sequences of colours."""
        terminal = self._terminal(run_id)
        pane = terminal.pane
        capture = self.tmux.capture(pane, history=history, colours=True) if pane else None
        if capture is None or not _is_of(capture[0], run_id, terminal):
            raise _no_terminal(run_id)
        return capture[1]

    def _screen(
        self, run_id: str, terminal: TerminalRecord, pane: Pane, text: str, *, history: int = 0
    ) -> Screen:
        # The keeper's record first: tmux 3.3 may not notice an end while it still pipes to a file.
        ended = _json(self._runs / run_id / "exit.json")
        alive = not (ended or pane.dead)
        state, asks, always = (ScreenState.UNKNOWN, ""), "", ""
        if alive and not history:
            state = read_screen(terminal.program, text, pane.cursor)
            if state[0] is ScreenState.WANTS:
                asks = permission_on(terminal.program, text)
                always = always_on(terminal.program, text).words
        code = ended.get("code", pane.status)
        return Screen(text, pane.cursor, alive, code, *state, pane.attached, asks, always)

    def is_ready(self, run_id: str) -> bool:
        self._ready.pop(run_id, None)
        try:
            screen = self.screen(run_id)
        except Unavailable:
            return False
        if not self._terminal(
            run_id
        ).program:  # without rules for its screen: ready once it shows text
            return screen.alive and bool(screen.text.strip())
        abandoned = screen.state is ScreenState.TYPING and not screen.watchers
        if screen.alive and screen.state is ScreenState.READY:
            self._ready[run_id] = ScreenSight(time.monotonic(), screen)
        return screen.alive and (abandoned or screen.state is ScreenState.READY)

    def paste(self, run_id: str, text: str) -> None:
        data = _typed(text)
        terminal = self._terminal(run_id)
        if not terminal.pane:
            raise _no_terminal(run_id)
        with self._alone(run_id):
            screen = self._just_seen(run_id) or self._fit(run_id)
            if not self._is_pasted(run_id, terminal, text, screen):
                self._enter(run_id, terminal, text, data, screen)
            self._press(run_id, terminal.pane, "Enter")

    def _just_seen(self, run_id: str) -> Screen | None:
        """The screen that `is_ready` saw, if it is so recent that nothing can have changed."""
        sight = self._ready.pop(run_id, None)
        return sight.screen if sight and time.monotonic() - sight.at < JUST else None

    def _is_pasted(self, run_id: str, terminal: TerminalRecord, text: str, screen: Screen) -> bool:
        """Whether the text was pasted before, and only its Enter had no effect."""
        if screen.state is not ScreenState.TYPING or screen.watchers:
            return False
        same = self._mark(run_id).is_file() and self._mark(run_id).read_text() == _digest(text)
        return holds(terminal.program, screen, text, pasted=same)

    def _mark(self, run_id: str) -> Path:
        return self._runs / run_id / "typed"

    def _enter(
        self, run_id: str, terminal: TerminalRecord, text: str, data: bytes, screen: Screen
    ) -> None:
        before = self._cleared(run_id, screen)
        write_atomically(self._mark(run_id), _digest(text))
        if self._by_editor(run_id, terminal, text):
            return
        capture = self.tmux.paste(terminal.pane, data)
        if capture is None:
            raise _ended(run_id)
        self._wait_until_drawn(run_id, before, self._screen(run_id, terminal, *capture))

    def _by_editor(self, run_id: str, terminal: TerminalRecord, text: str) -> bool:
        """Enter text that a paste would change through the program's editor, which is fleet's."""
        sheet = sheet_of(terminal.program)
        if sheet is None or sheet.editor is None or not terminal.editor:
            return False
        if not sheet.editor.loses.search(text):
            return False
        file = self._runs / run_id / "typed.text"
        write_atomically(file, text)
        self._press(run_id, terminal.pane, sheet.editor.key)
        _until(lambda: not file.exists(), EDITING)
        taken = not file.exists()
        file.unlink(missing_ok=True)
        states = {ScreenState.TYPING} if taken else {ScreenState.TYPING, ScreenState.READY}
        if not _until(lambda: self._fit(run_id).state in states, EDITING):
            raise Refused(
                f"{run_id} has an editor open in its terminal.",
                fix=f"Leave it: fleet attach {run_id}",
                code="typing",
            )
        return taken

    def press(self, run_id: str, key: str) -> None:
        if key not in KEYS:
            raise BadInput(f"'{key}' is not a key.", fix=f"One of: {', '.join(KEYS)}.")
        if not self.screen(run_id).alive:
            raise _ended(run_id)
        self._press(run_id, self._terminal(run_id).pane, key)

    def permit(
        self,
        run_id: str,
        *,
        yes: bool,
        expected: str = "",
        announced: bool = True,
        always: bool = False,
    ) -> str:
        """Press the key for the answer, again until the screen changes: a dialog may not be ready yet."""
        terminal = self._terminal(run_id)
        with self._alone(run_id):
            if announced:  # a moment before its dialog is on the screen
                _until(lambda: bool(self.screen(run_id).asks), ASKING_SECONDS)
            before = self.screen(run_id)
            if not before.asks:
                raise _no_dialog(run_id, before)
            if expected and not _is_same(expected, before.asks):
                raise Refused(
                    f"{run_id} now asks for something else: {before.asks}",
                    fix=f"`fleet explain {run_id}` shows what it asks for.",
                    code="asks_other",
                )
            key = _key_of(run_id, terminal.program, before, yes=yes, always=always)
            for _ in range(PERMIT_TRIES):
                self._press(run_id, terminal.pane, key)
                if _until(lambda: self.screen(run_id).asks != before.asks, PERMIT_SECONDS):
                    return before.asks
        raise Unavailable(
            f"The dialog of {run_id} is still there.",
            fix=f"Answer it yourself: fleet attach {run_id}",
        )

    def attach_argv(self, run_id: str, env: Mapping[str, str]) -> list[str]:
        """The command to attach to this run's terminal. Raise `Unavailable` when it has none."""
        self.screen(run_id)
        return self.tmux.attach_argv(self._terminal(run_id).session, env)

    def _press(self, run_id: str, pane: str, key: str) -> None:
        if not self.tmux.press(pane, key):
            raise _ended(run_id)

    def _cleared(self, run_id: str, screen: Screen) -> Screen:
        """The screen, ready for typing, with an empty prompt box.

        Some programs put an interrupted prompt back there. With no user attached nobody is typing,
        so fleet erases such text; else it raises `Refused`.
        """
        begun, presses = time.monotonic(), 0
        while screen.state is ScreenState.TYPING:
            passed = time.monotonic() - begun
            if not screen.watchers and passed > ERASE_EVERY * (presses + 1):
                self._press(run_id, self._terminal(run_id).pane, "C-u")
                presses += 1
            if passed > (DRAWING_SECONDS if screen.watchers else ERASING):
                raise Refused(
                    f"The prompt box of {run_id} contains text that was not sent.",
                    fix=f"Send or erase it: fleet attach {run_id}",
                    code="typing",
                )
            time.sleep(LOOK_SECONDS)
            screen = self._fit(run_id)
        return screen

    def _fit(self, run_id: str) -> Screen:
        """The screen; raise `Refused` when it is not safe to type."""
        return _fit_to_type(run_id, self.screen(run_id))

    def _wait_until_drawn(self, run_id: str, before: Screen, after: Screen) -> None:
        """Wait, for a program can take an Enter that comes with the text for a part of it.

        A dialog that came up meanwhile gets no Enter either: the text stays in the prompt box.
        """
        until = time.monotonic() + DRAWING_SECONDS
        _fit_to_type(run_id, after)
        while after.text == before.text and after.cursor == before.cursor:
            if time.monotonic() > until:
                return
            time.sleep(LOOK_SECONDS)
            after = self._fit(run_id)

    @contextmanager
    def _alone(self, run_id: str) -> Iterator[None]:
        path = self._runs / run_id / "terminal.lock"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _lock(fd, run_id)
            yield
        finally:
            os.close(fd)

    def _terminal(self, run_id: str) -> TerminalRecord:
        launch = _json(self._runs / run_id / "launch.json")
        keeper = _json(self._runs / run_id / "keeper.json")
        session, pane = str(launch.get("session", "")), str(keeper.get("pane", ""))
        pane = pane if PANE_ID.fullmatch(pane) else ""  # tmux parses it, and an agent may write it
        program = program_of(launch["argv"]) if session else ""
        editor = EDITOR in launch.get("env", {})
        return TerminalRecord(session, program, keeper.get("pid", 0), pane, editor)


def _is_of(pane: Pane, run_id: str, terminal: TerminalRecord) -> bool:
    """Whether the pane is the run's: tmux's record of the run and the keeper's pid must both agree."""
    return pane.run == run_id and pane.pid == terminal.pid


def _fit_to_type(run_id: str, screen: Screen) -> Screen:
    if not screen.alive:
        raise _ended(run_id)
    if screen.state is ScreenState.WANTS:
        raise Refused(
            f"{run_id} is showing a permission dialog, and typed text would answer it.",
            fix=f"Answer it: fleet approve {run_id}, fleet deny {run_id}, or fleet attach {run_id}",
            code="wants_permission",
        )
    if screen.state in {ScreenState.PANEL, ScreenState.FIRST_START}:
        raise Refused(
            f"{run_id} is showing a screen of its program that takes the keys ({screen.rule}).",
            fix=f"Answer it, or close it with Esc: fleet attach {run_id}",
            code=str(screen.state),
        )
    return screen


def _key_of(run_id: str, program: str, screen: Screen, *, yes: bool, always: bool) -> str:
    """The key that answers the dialog on this screen."""
    sheet = sheet_of(program)
    assert sheet is not None
    assert sheet.permit is not None
    if not always:
        return sheet.permit.yes if yes else sheet.permit.no
    offered = always_on(program, screen.text)
    if not offered.key:
        raise Refused(
            f"The dialog of {run_id} has no answer that allows this from now on.",
            fix=f"Allow it once: fleet approve {run_id}",
            code="no_always",
        )
    return offered.key


def _typed(text: str) -> bytes:
    """Raise `BadInput` for text that cannot be pasted as a whole."""
    data = text.encode("utf-8", "surrogateescape")
    if not data.strip():
        raise BadInput("The message is empty.")
    if b"\0" in data or END_OF_PASTE in data:
        problem = "a NUL" if b"\0" in data else "the sequence that ends a paste"
        raise BadInput(f"The text holds {problem}, which cannot be typed into a terminal.")
    if len(data) > MAX_PROMPT_BYTES:
        raise BadInput(
            f"The text has {len(data):,} bytes; at most {MAX_PROMPT_BYTES:,} can be sent.",
            fix="Put it into a file of the workspace, and name the file.",
        )
    return data


def _digest(text: str) -> str:
    return digest_of(text.encode("utf-8", "surrogateescape"))


def _until(is_so: Callable[[], bool], seconds: float) -> bool:
    """Wait until the condition holds; return False when it did not in that time."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _is_same(expected: str, asks: str) -> bool:
    """Whether both ask for the same, also in a hook's words: `Bash: COMMAND` for a dialog with that command."""
    about = expected.partition(": ")[2] or expected
    return "".join(about.split()) in "".join(asks.split())


def _no_dialog(run_id: str, screen: Screen) -> Refused:
    match screen.state:
        case ScreenState.WANTS:
            what, fix = (
                "asks something else on its screen",
                f"Answer it there: fleet attach {run_id}",
            )
        case ScreenState.FIRST_START:
            what = "asks for no permission: it shows the first-start screen of its program"
            fix = f"Answer it there: fleet attach {run_id}"
        case _:
            what, fix = "asks for no permission now", f"See what it does: fleet explain {run_id}"
    return Refused(f"{run_id} {what}.", fix=fix, code="no_dialog")


def _no_terminal(run_id: str) -> Unavailable:
    return Unavailable(f"{run_id} has no terminal.", fix=f"See how it is: fleet show {run_id}")


def _ended(run_id: str) -> Refused:
    return Refused(
        f"The program of {run_id} has ended.", fix=f"See how: fleet show {run_id}", code="exited"
    )


def _lock(fd: int, run_id: str) -> None:
    until = time.monotonic() + TURN
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise Unavailable(
                    f"Another process is typing into the terminal of {run_id}."
                ) from None
            time.sleep(LOOK_SECONDS)
        else:
            return


def _json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(read_regular(path)))
    except (OSError, ValueError, TypeError):
        return {}
