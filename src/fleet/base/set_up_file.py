"""`setup.now` in a task's folder contains the set-up command that runs now, if any."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.base.files import read_regular, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

NAME = "setup.now"


def begin(folder: Path, command: str) -> None:
    with suppress(OSError):  # a full disk must not stop the set-up
        write_atomically(folder / NAME, command, durable=False)


def end(folder: Path) -> None:
    with suppress(OSError):
        (folder / NAME).unlink()


def running(folder: Path) -> str:
    """The first line of the command; empty when none runs."""
    with suppress(OSError):
        text = read_regular(folder / NAME).decode("utf-8", "replace")
        return text.strip().partition("\n")[0]
    return ""
