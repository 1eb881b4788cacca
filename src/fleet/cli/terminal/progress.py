"""A line on stderr that moves while something takes long.

    with Progress("Installing LiteLLM", of=117) as progress:
        progress.at("numpy", done=12)

On a terminal the line is drawn in place from the first half second on, and is gone at the end. Into
a pipe, and on a terminal that only knows plain lines, an `announced` one writes a line at its start
and one at its end; any other writes nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from fleet.base.set_up_file import running
from fleet.cli.terminal import output, render
from fleet.cli.terminal.bars import drawn
from fleet.cli.terminal.human import SECOND, duration
from fleet.cli.terminal.measure import fit, harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fleet.cli.terminal.view import Style

DRAW_SECONDS = 0.1  # seconds between two drawings
QUIET_SECONDS = 0.5  # seconds in which nothing is drawn: most of what is done is over by then
HINT_SECONDS = 2.0  # seconds after which a program that reads along hears what we wait for
CLEAR = "\r\x1b[K"
WHEEL, PLAIN_WHEEL = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
BAR = 20  # columns


class MovingLine:
    """Draws what `text` returns, again and again; nothing while that is empty."""

    def __init__(self, text: Callable[[], str], *, after: float = 0.0) -> None:
        self._text, self._after = text, after
        self.moves = output.is_terminal(sys.stderr)
        self._wheel = WHEEL if _can_draw(WHEEL) else PLAIN_WHEEL
        self._turns = 0
        self._drawn = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._move, daemon=True)

    def __enter__(self) -> Self:
        if self.moves:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def say(self, text: str, style: Style = "") -> None:
        """Write a line that stays, above the one that moves."""
        with self._lock:
            self._clear()
            render.say(text, style)

    def write(self, text: str) -> None:
        """Likewise, lines that are painted already."""
        with self._lock:
            self._clear()
            output.write(text, sys.stderr)

    def _move(self) -> None:
        if self._over.wait(self._after):
            return
        while not self._over.is_set():
            with self._lock:
                self._draw()
            self._over.wait(DRAW_SECONDS)
        with self._lock:
            self._clear()

    def _draw(self) -> None:
        text = self._text() if _in_foreground() else ""
        if not text:
            self._clear()
            return
        self._turns += 1
        line = f"{self._wheel[self._turns % len(self._wheel)]} {harmless(text)}"
        wide = output.size(sys.stderr)[0]
        output.write(CLEAR + fit(line, wide - len("^C") - 1), sys.stderr)  # echoed behind it
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            output.write(CLEAR, sys.stderr)
            self._drawn = False


class ProgressLine(MovingLine):
    """`of`: how many steps there are, if that is known; then a bar is drawn."""

    def __init__(self, doing: str, *, of: int = 0, announced: bool = False) -> None:
        super().__init__(self.line, after=QUIET_SECONDS)
        self._doing, self._of = doing, of
        self._detail, self._done = "", 0
        self._began = time.monotonic()
        self._announced = announced and not self.moves

    def __enter__(self) -> Self:
        if self._announced:
            render.say(f"{self._doing} …")
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        super().__exit__(kind, *rest)
        if self._announced and kind is None:
            render.say(f"{self._doing}: done in {self._took()}.")

    def at(self, detail: str, *, done: int | None = None) -> None:
        """What is going on now, and how many steps are behind it."""
        self._detail = detail
        self._done = self._done if done is None else done

    def of(self, doing: str, done: int, of: int) -> None:
        """What takes long now, once it is known how many steps it has."""
        self._doing, self._done, self._of = doing, done, of

    def line(self) -> str:
        parts = [self._doing]
        if self._of:
            done = min(self._done, self._of)
            parts.append(f"{_bar(done / self._of)} {done} of {self._of}")
        parts.append(f"({self._took()})")
        return " ".join(parts) + (f" {self._detail}" if self._detail else "")

    def _took(self) -> str:
        return duration(int(time.monotonic() - self._began) * SECOND)


class SetUpProgress(ProgressLine):
    """Into a pipe it writes lines, too. It also says which set-up command runs for these tasks; `folder` holds a folder for each."""

    def __init__(self, doing: str, folder: Path, tasks: Sequence[str]) -> None:
        super().__init__(doing)
        self._folders = [folder / task for task in tasks]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def line(self) -> str:
        self.at(self._set_up())
        return super().line()

    def _set_up(self) -> str:
        commands = [command for folder in self._folders if (command := running(folder))]
        of = f" {len(commands)} of {len(self._folders)}" if len(self._folders) > 1 else ""
        return f"setting up{of}: {commands[0]}" if commands else ""

    def _move(self) -> None:
        """Into a pipe: a line for each thing that it waits for, once that takes long."""
        if self.moves:
            super()._move()
            return
        last = ""
        self._over.wait(HINT_SECONDS)
        while not self._over.is_set():
            text = f"{self._doing}: {self._set_up() or 'it has not begun yet'} …"
            if text != last:
                render.say(text)
                last = text
            self._over.wait(DRAW_SECONDS)


def _bar(part: float) -> str:
    """As `[####    ]`, with blocks where the terminal has them."""
    return f"[{drawn(part, BAR):<{BAR}}]"


def _can_draw(text: str) -> bool:
    try:
        text.encode(sys.stderr.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _in_foreground() -> bool:
    """Behind a shell's `&` the terminal is somebody else's, who may be typing there."""
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True
