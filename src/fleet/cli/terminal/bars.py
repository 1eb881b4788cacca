"""A plot for a terminal: one horizontal bar per row, as wide as there is room."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fleet.cli.terminal.measure import width
from fleet.cli.terminal.output import columns
from fleet.cli.terminal.view import Cell, Column, Table
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.cli.terminal.view import Style, Value

EIGHTHS = " ▏▎▍▌▋▊▉█"
PIPE = 80  # columns, where no terminal says
NARROWEST, WIDEST = 8, 60


class Bar(NamedTuple):
    labels: Sequence[str]
    value: float  # nothing is drawn for 0
    figure: str
    style: Style = ""


def plot(titles: Sequence[str], bars: Sequence[Bar]) -> Table:
    """The longest bar fills what the labels and the figures leave of the line."""
    room = columns(sys.stdout) or PIPE
    labels = [*zip(*(bar.labels for bar in bars), strict=True)]
    used = sum(
        max(width(text) for text in (title, *texts)) + 2
        for title, texts in zip(titles, labels, strict=True)
    )
    used += max((width(bar.figure) for bar in bars), default=0) + 2
    wide = min(max(room - used, NARROWEST), WIDEST)
    most = max((bar.value for bar in bars), default=0.0)
    rows: list[list[Value]] = [
        [*bar.labels, Cell(drawn(bar.value / most if most else 0.0, wide), bar.style), bar.figure]
        for bar in bars
    ]
    return Table([*titles, "", Column("", right=True)], rows)


def drawn(part: float, wide: int) -> str:
    """A bar of this part of the width; with `#` where the terminal has no blocks."""
    if not draws_blocks():
        return "#" * max(round(part * wide), int(part > 0))
    eighths = max(round(part * wide * 8), int(part > 0))
    whole, rest = divmod(eighths, 8)
    return EIGHTHS[8] * whole + (EIGHTHS[rest] if rest else "")


def draws_blocks() -> bool:
    try:
        EIGHTHS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
