"""A view that is drawn again in place while it changes; into a pipe only the changes are written.

    with Live() as live:
        while not done:
            live.update(table_of(client.call(ListTasks())))
            time.sleep(0.5)

What was drawn last stays on the screen. The cursor comes back whatever ends the block.
"""

from __future__ import annotations

import re
import signal
import sys
from typing import TYPE_CHECKING, NoReturn, Self

from fleet.cli.terminal import output, render
from fleet.cli.terminal.measure import fit, width

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from fleet.cli.terminal.view import View

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
CLEAR_LINE, CLEAR_REST = "\x1b[K", "\x1b[J"
STYLED = re.compile(r"\x1b\[\d+m")  # the only sequences that a drawn line holds


class Live:
    def __init__(self) -> None:
        self.out = sys.stdout
        self.redraws = output.is_terminal(self.out)
        self.drawn: list[str] = []
        self._term: object = None

    def __enter__(self) -> Self:
        if self.redraws:
            self._term = _catch_term()
            output.write(HIDE, self.out)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.redraws and kind is not output.ReaderGone:
            output.write(SHOW, self.out)
        if self._term is not None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def update(self, view: View) -> None:
        """Show the view in place of the last one."""
        lines = render.shown_lines(view, self.out)
        if not self.redraws:
            before = {words(line) for line in self.drawn}
            self.drawn = lines
            changed = [line for line in lines if words(line) not in before]
            output.write("".join(f"{line}\n" for line in changed), self.out)
            return
        wide, high = output.size(self.out)
        lines = clip(lines, wide, high)
        if lines == self.drawn:
            return
        up = rows(self.drawn, wide)
        text = f"\x1b[{up}F" if up else ""
        text += "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_REST
        self.drawn = lines
        output.write(text, self.out)

    def above(self, text: str) -> None:
        """Print a line that stays, above what is being drawn."""
        line = render.plain(text)
        if not self.redraws:
            output.write(f"{line}\n", self.out)
            return
        up = rows(self.drawn, output.size(self.out)[0])
        start = f"\x1b[{up}F" if up else ""
        below = "".join(f"{drawn}{CLEAR_LINE}\n" for drawn in self.drawn)
        output.write(f"{start}{line}{CLEAR_REST}\n{below}", self.out)


def clip(lines: list[str], wide: int, high: int) -> list[str]:
    """What fits on one screen: a line that wrapped, or scrolled away, could not be drawn again."""
    room = max(high - 1, 1)
    if len(lines) > room:
        lines = [*lines[: room - 1], f"… {len(lines) - room + 1} more"]
    return [line if width(bare(line)) <= wide else fit(bare(line), wide) for line in lines]


def words(line: str) -> tuple[str, ...]:
    """A line apart from its alignment, which changes with the lines around it."""
    return tuple(line.split())


def bare(line: str) -> str:
    return STYLED.sub("", line)


def rows(lines: list[str], wide: int) -> int:
    """The rows these lines take; after the terminal became narrower a line takes several."""
    return sum(max(1, -(-width(bare(line)) // wide)) for line in lines)


def _catch_term() -> object:
    """Let SIGTERM unwind the block, unless the program has a plan for it already."""
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            return signal.signal(signal.SIGTERM, _leave)
    except ValueError:  # not the main thread
        pass
    return None


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
