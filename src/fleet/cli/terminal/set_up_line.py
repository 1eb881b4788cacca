"""One line on the terminal while workspaces are set up: which command runs, and since when.

    with Readying(home.path / "tasks", tasks):
        client.start(tasks, patience=60)

Into a pipe, and while nothing is set up, nothing is written. The line goes when the block ends.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from fleet.base.set_up_file import running
from fleet.cli.terminal import output, render
from fleet.cli.terminal.measure import fit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

EVERY = 0.2  # seconds
CLEAR = "\r\x1b[K"


class Readying:
    """`folder` holds a folder for each task."""

    def __init__(self, folder: Path, tasks: Sequence[str]) -> None:
        self._folders = [folder / task for task in tasks]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)
        self._began: dict[str, float] = {}

    def __enter__(self) -> Self:
        if output.is_terminal(sys.stderr):
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _tell(self) -> None:
        text = ""
        while not self._over.wait(EVERY):
            line = self.line(time.monotonic())
            if line != text:
                wide = output.size(sys.stderr)[0]
                output.write(CLEAR + fit(render.plain(line), wide - 1), sys.stderr)
                text = line
        if text:
            output.write(CLEAR, sys.stderr)

    def line(self, now: float) -> str:
        """Empty while nothing is set up."""
        commands = [command for folder in self._folders if (command := running(folder))]
        if not commands:
            self._began.clear()
            return ""
        first = commands[0]
        began = self._began.setdefault(first, now)
        of = f" {len(commands)} of {len(self._folders)}" if len(self._folders) > 1 else ""
        return f"Setting up{of}: {first} ({now - began:.0f} s)"
