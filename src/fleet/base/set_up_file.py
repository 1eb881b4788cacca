"""`setup.now` in a task's folder: the set-up command that runs; it is gone when none does."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAME = "setup.now"


def begin(folder: Path, command: str) -> None:
    with suppress(OSError):  # a full disk must not stop the set-up
        (folder / NAME).write_text(command, "utf-8", "replace")


def end(folder: Path) -> None:
    with suppress(OSError):
        (folder / NAME).unlink()


def running(folder: Path) -> str:
    """The first line of the command; empty when none runs."""
    with suppress(OSError):
        return (folder / NAME).read_text("utf-8", "replace").strip().partition("\n")[0]
    return ""
