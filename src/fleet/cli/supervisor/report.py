"""What a supervisor does, line by line on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.cli.terminal.human import clock
from fleet.cli.terminal.log_lines import fact_line, words_of
from fleet.cli.terminal.render import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.event import Event

LONGEST = 100  # characters of an event's data


class TerminalReport:
    """`heard` is called before each event is shown."""

    def __init__(self, heard: Callable[[], None] = lambda: None) -> None:
        self._heard = heard

    def line(self, text: str) -> None:
        say(text)

    def warning(self, text: str, at: int) -> None:
        say(f"{clock(at)} {text}", "yellow")

    def event(self, event: Event) -> None:
        self._heard()
        text = words_of(event.data)[:LONGEST]
        say(fact_line(event.at, event.run or event.task, event.type, text))
