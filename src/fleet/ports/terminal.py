"""The terminals that coders run in."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from fleet.domain.data import NamedTuple


class ScreenState(StrEnum):
    """What a screen shows, by rules that are data. One that no rule knows asserts nothing."""

    WORKING = "working"
    READY = "ready"  # it waits for a prompt
    TYPING = "typing"  # there are words in its prompt box that nobody has sent
    WANTS = "wants"  # a permission: keys would answer it
    PANEL = "panel"  # a panel of the program's own is open, such as that of /help; Esc closes it
    FIRST_START = "first-start"  # what it asks a person once: a theme, a login, trust in a folder
    UNKNOWN = "unknown"


class Screen(NamedTuple):
    """What a run's terminal shows now; `rule` is what its state was told by."""

    text: str
    cursor: tuple[int, int] = (0, 0)  # column and line, from the upper left
    alive: bool = True
    status: int | None = None  # how it ended; not known at once
    state: ScreenState = ScreenState.UNKNOWN
    rule: str = ""
    watchers: int = 0  # people who are attached


class Terminal(Protocol):
    """The terminals that coders run in. All raise `Unavailable` when the run has none now."""

    def screen(self, run_id: str, *, history: int = 0) -> Screen:
        """With so many lines from before what is visible."""

    def is_ready(self, run_id: str) -> bool:
        """Whether one may paste: its screen shows that it waits for a prompt, and nobody types."""

    def paste(self, run_id: str, text: str) -> None:
        """Type this, byte for byte, and then Enter; nobody else's text comes in between.

        That it was taken is not proven by this. Raise `Refused`, having typed nothing, when its
        program has ended (`exited`), shows a dialog, which the keys would answer
        (`wants_permission`), or a screen that takes them (`panel`, `first-start`), or has
        somebody's words in its prompt box (`typing`); `BadInput` when it is nothing that can be
        typed.
        """

    def press(self, run_id: str, key: str) -> None:
        """One of `Enter`, `Escape`, `C-c`, `C-u` and `C-g`."""
