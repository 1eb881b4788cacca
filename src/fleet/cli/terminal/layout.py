"""Views as lines of text for a given width, or for a pipe (no width: nothing is cut)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, assert_never

from fleet.cli.terminal.measure import fit, harmless, pad, width, wrap
from fleet.cli.terminal.view import Cell, Column, ItemStream, Pairs, Raw, Stack, Table, Text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fleet.cli.terminal.view import Style, Value, View

GAP = "  "
LEAST_WRAPPED = 20  # characters in a line of a value; in less room the terminal wraps it
CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


def lines(view: View, *, room: int | None, colour: bool) -> list[str]:
    """`room` is the width of the terminal, or None where there is none."""
    match view:
        case Table():
            return table_lines(view, room=room, colour=colour)
        case Pairs(pairs):
            return pair_lines(pairs, room=room, colour=colour)
        case Text(text, style):
            text = harmless(text, lines=True)
            return [paint(line, style, colour=colour) for line in text.splitlines()]
        case Raw(text):
            return text.splitlines()
        case Stack(parts):
            return stack_lines(parts, room=room, colour=colour)
        case ItemStream():
            raise TypeError("a feed is shown item by item")
        case _:
            assert_never(view)


def paint(text: str, style: Style, *, colour: bool) -> str:
    """Colour is always said in words as well: a style only repeats what the text says."""
    if not style or not colour or not text:
        return text
    return f"\x1b[{CODES[style]}m{text}\x1b[0m"


def cell(value: Value) -> Cell:
    if isinstance(value, Cell):
        return value
    return Cell("-" if value is None else str(value))


def table_lines(table: Table, *, room: int | None, colour: bool) -> list[str]:
    if not table.rows:
        return [harmless(table.empty)] if table.empty else []
    columns = [Column(c) if isinstance(c, str) else c for c in table.columns]
    head = [Cell(column.title.upper(), "bold") for column in columns]
    rows = [head, *([_one_line(value) for value in row] for row in table.rows)]
    if room is not None:
        rows = _with_short_paths(rows, columns)
    widths = [max(width(row[i].text) for row in rows) for i in range(len(columns))]
    if room is not None:
        empty = {i for i in range(len(columns)) if all(row[i] is None for row in table.rows)}
        empty |= {i for i, c in enumerate(columns) if c.path and len({r[i] for r in rows[1:]}) == 1}
        kept = needed(widths, columns, room, empty)
        columns, widths = [columns[i] for i in kept], [widths[i] for i in kept]
        rows = [[row[i] for i in kept] for row in rows]
        widths = shrink(widths, columns, room)
    return [_row(row, columns, widths, cut=room is not None, colour=colour) for row in rows]


def _with_short_paths(rows: list[list[Cell]], columns: Sequence[Column]) -> list[list[Cell]]:
    paths = {i for i, column in enumerate(columns) if column.path}
    if not paths:
        return rows
    return [[_short(c) if i in paths else c for i, c in enumerate(row)] for row in rows]


def _short(path: Cell) -> Cell:
    """Below the home directory a path begins with `~`."""
    home = os.environ.get("HOME", "").rstrip("/")
    inside = home and f"{path.text}/".startswith(f"{home}/")
    return Cell(f"~{path.text[len(home) :]}", path.style) if inside else path


def _one_line(value: Value) -> Cell:
    whole = cell(value)
    return Cell(harmless(whole.text), whole.style)


def needed(
    widths: Sequence[int], columns: Sequence[Column], room: int, empty: Collection[int]
) -> list[int]:
    """The columns that stay; see `Column`."""
    wanted = _wanted(widths, columns)
    kept = [i for i, column in enumerate(columns) if not (column.spare and i in empty)]
    while _total([wanted[i] for i in kept]) > room and any(columns[i].spare for i in kept):
        kept.remove(max(kept, key=lambda i: columns[i].spare))
    return kept


def _wanted(widths: Sequence[int], columns: Sequence[Column]) -> list[int]:
    return [
        min(wide, max(column.least, column.wants)) if column.flexible else wide
        for wide, column in zip(widths, columns, strict=True)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def shrink(widths: Sequence[int], columns: Sequence[Column], room: int) -> list[int]:
    """Take columns from the widest flexible one, again and again, until the row fits.

    A row of which nothing more may be cut stays wider than the room, and the terminal wraps it.
    """
    left = [min(w, room) if c.flexible else w for w, c in zip(widths, columns, strict=True)]
    wanted = _wanted(widths, columns)
    least = wanted if _total(wanted) <= room else [column.least for column in columns]
    over = _total(left) - room
    while over > 0:
        able = [i for i, c in enumerate(columns) if c.flexible and left[i] > least[i]]
        if not able:
            break
        left[max(able, key=left.__getitem__)] -= 1
        over -= 1
    return left


def _row(
    row: Sequence[Cell],
    columns: Sequence[Column],
    widths: Sequence[int],
    *,
    cut: bool,
    colour: bool,
) -> str:
    last = len(columns) - 1
    cells = []
    for i, (value, column, room) in enumerate(zip(row, columns, widths, strict=True)):
        text = value.text
        if cut and column.flexible:
            text = fit(text, room, tail=column.path)
        space = room - width(text)
        if column.right:
            cells.append(" " * space + paint(text, value.style, colour=colour))
        else:
            tail = "" if i == last else " " * space
            cells.append(paint(text, value.style, colour=colour) + tail)
    return GAP.join(cells).rstrip(" ")


def pair_lines(pairs: Sequence[tuple[str, Value]], *, room: int | None, colour: bool) -> list[str]:
    cells = [(harmless(label), cell(value)) for label, value in pairs]
    indent = max((width(label) for label, _ in cells), default=0) + len(GAP)
    beside = room - indent if room is not None else 0
    lines = []
    for label, value in cells:
        text = harmless(value.text, lines=True).splitlines() or [""]
        if beside >= LEAST_WRAPPED:
            text = [part for line in text for part in wrap(line, beside)]
        first, *rest = text
        start = paint(pad(label, indent), "dim", colour=colour)
        lines.append((start + paint(first, value.style, colour=colour)).rstrip(" "))
        lines += [" " * indent + paint(line, value.style, colour=colour) for line in rest]
    return lines


def stack_lines(parts: Sequence[tuple[str, View]], *, room: int | None, colour: bool) -> list[str]:
    drawn: list[str] = []
    for heading, view in parts:
        body = lines(view, room=room, colour=colour)
        if not body:
            continue
        if drawn:
            drawn.append("")
        if heading:
            drawn.append(paint(harmless(heading), "bold", colour=colour))
        drawn += body
    return drawn
