"""The text in a program's prompt box, as far as its screen shows it."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from fleet.adapters.tmux.screens import sheet_of

if TYPE_CHECKING:
    from fleet.ports import Screen

DRAWN = re.compile(r"[\s\u2500-\u257f]+")  # blanks, and lines of boxes
WIDE = "WF"


def holds(program: str, screen: Screen, text: str, *, pasted: bool) -> bool:
    """Whether the prompt box contains this text, up to the cursor.

    `pasted`: it is known to have been pasted last. Then what a program shows in the place of
    something long stands for it.
    """
    before = _before(screen)
    words = DRAWN.sub("", text)
    if words and DRAWN.sub("", before).endswith(words):
        return True
    sheet = sheet_of(program)
    short = sheet.pasted if sheet else None
    return pasted and short is not None and short.search(before.rstrip()) is not None


def _before(screen: Screen) -> str:
    """The text left of the cursor on its line, and all lines above."""
    column, number = screen.cursor
    lines = screen.text.split("\n")
    line = lines[number] if number < len(lines) else ""
    return "\n".join([*lines[:number], _cells(line, column)])


def _cells(line: str, count: int) -> str:
    """The beginning of a line that takes so many columns."""
    used = 0
    for index, char in enumerate(line):
        if used >= count:
            return line[:index]
        used += _width(char)
    return line


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in WIDE else 1
