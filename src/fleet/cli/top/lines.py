"""A pane of many lines, of which only those in view are drawn. What it shows is text, never markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from fleet.cli.terminal.measure import fit, harmless, width
from fleet.cli.top.rows import TopRow, cells, columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.binding import BindingType

MARKED = Style(reverse=True)
DRAWN = re.compile("[ \u2500-\u259f]+")  # lines and corners of boxes, shades
RIGHT_EDGE = re.compile("  +[\u2502\u2503]? *$")  # of a box that is wider than the pane


class ScrollingText(ScrollView, can_focus=True):
    """Text that scrolls. While its end is in view it follows what is added."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self._head: list[tuple[str, str]] = []
        self._body: list[str] = []
        self._drawn: list[tuple[str, Style]] = []
        self._key: object = None

    def show(
        self, key: object, head: list[tuple[str, str]], body: Sequence[str], *, live: bool
    ) -> None:
        """`key`: what it is about. Of something else the beginning is shown, or the end if `live`."""
        lines = list(body)
        if key == self._key and head == self._head and lines == self._body:
            return
        at_end = self.scroll_offset.y >= self.max_scroll_y
        fresh = key != self._key
        self._key, self._head, self._body = key, head, lines
        self._lay_out()
        if live and (fresh or at_end):
            self.scroll_end(animate=False, immediate=False)
        elif fresh:
            self.scroll_home(animate=False, immediate=False)

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        room = max(self.scrollable_content_region.width, 10)
        drawn = []
        for text, style in [*self._head, *([("─" * room, "dim")] if self._head else [])]:
            drawn += [(part, Style.parse(style)) for part in wrapped(text, room)]
        for text in self._body:
            clean = harmless(text.replace("\t", "    "))
            drawn += [(part, _of_diff(clean)) for part in wrapped(clean, room)]
        self._drawn = drawn
        self.virtual_size = Size(room, len(drawn))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        room = self.scrollable_content_region.width
        if at >= len(self._drawn):
            return Strip.blank(room, self.rich_style)
        text, style = self._drawn[at]
        return Strip([Segment(text, self.rich_style + style)]).adjust_cell_length(
            room, self.rich_style
        )


def wrapped(text: str, room: int) -> list[str]:
    """Lines that fit, broken after a space where one is near. What is only drawn is cut."""
    if len(set(text.strip())) == 1 or DRAWN.fullmatch(text):
        return [fit(text, room).rstrip("…")]
    if (edge := RIGHT_EDGE.search(text)) and width(text) > room:
        text = text[: edge.start()]
    parts = []
    while width(text) > room:
        piece = fit(text, room)[:-1] or text[:1]
        space = piece.rfind(" ") + 1
        piece = piece[:space] if space > len(piece) // 2 else piece
        parts.append(piece)
        text = text[len(piece) :]
    return [*parts, text]


def _of_diff(line: str) -> Style:
    if line.startswith(("+++", "---", "diff ", "index ")):
        return Style(bold=True)
    marks = {"+": "green", "-": "red", "@": "cyan"}
    known = marks.get(line[:1])
    return Style(color=known) if known and (line[0] != "@" or line.startswith("@@")) else Style()


class Rows(ScrollView, can_focus=True):
    """The list. It keeps the selected row under the cursor while others come and go."""

    def __init__(self, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self.rows: list[TopRow] = []
        self.now = 0
        self.stale = False
        self._columns = (0, 0)
        self._cursor = 0

    @property
    def selected(self) -> TopRow | None:
        row = self.rows[self._cursor] if self._cursor < len(self.rows) else None
        return row if row is not None and row.key else None

    def show(self, rows: list[TopRow], now: int) -> None:
        """Select the same row as before, else the one that takes its place."""
        before = self.selected
        self.now = now
        if rows != self.rows:
            self.rows, self._columns = rows, columns_of(rows)
            self.virtual_size = Size(self.scrollable_content_region.width, len(rows))
            self._cursor = self._place_of(before)
            self._keep_in_view()
        self.refresh()

    def _place_of(self, before: TopRow | None) -> int:
        keys = [row.key for row in self.rows]
        if before is not None and before.key in keys:
            return keys.index(before.key)
        tasks = [row.task for row in self.rows]
        if before is not None and before.item is None and before.task in tasks:
            return tasks.index(before.task)  # it needs a person now
        index = min(self._cursor, max(len(self.rows) - 1, 0))
        if before is not None and before.item is not None:  # the next that needs a person
            items = [at for at, row in enumerate(self.rows) if row.item is not None]
            index = min(items, key=lambda at: (abs(at - index), -at), default=index)
        return self._nearest(index, 1)

    def _nearest(self, at: int, step: int) -> int:
        """The next row from here that is no heading; the other way if there is none."""
        for way in (step, -step):
            index = at
            while 0 <= index < len(self.rows):
                if self.rows[index].key:
                    return index
                index += way
        return 0

    def move(self, by: int) -> None:
        if self.rows:
            wanted = min(max(self._cursor + by, 0), len(self.rows) - 1)
            self._cursor = self._nearest(wanted, 1 if by >= 0 else -1)
            self._keep_in_view()
            self.refresh()

    def go_to(self, at: int) -> None:
        if 0 <= at < len(self.rows) and self.rows[at].key:
            self._cursor = at
            self.refresh()

    def _keep_in_view(self) -> None:
        top, high = self.scroll_offset.y, max(self.size.height, 1)
        first = self._cursor - 1 if self._cursor else 0  # with the heading above it
        if first < top:
            self.scroll_to(y=first, animate=False, immediate=True)
        elif self._cursor >= top + high:
            self.scroll_to(y=self._cursor - high + 1, animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        at, room = y + self.scroll_offset.y, self.scrollable_content_region.width
        if at >= len(self.rows):
            return Strip.blank(room, self.rich_style)
        row = self.rows[at]
        pieces = cells(row, room, self.now, self._columns)
        segments = [Segment(text, self._style(style)) for text, style in pieces]
        strip = Strip(segments).adjust_cell_length(room, self.rich_style)
        return strip.apply_style(MARKED) if at == self._cursor and row.key else strip

    def _style(self, style: str) -> Style:
        return self.rich_style + Style.parse("dim" if self.stale else style)
