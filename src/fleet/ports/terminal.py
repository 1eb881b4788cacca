"""The terminals that coders run in."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet.domain.activity import SeenRun
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.ports.coder import Listener


class ScreenState(StrEnum):
    """What a screen shows, by rules that are data. One that no rule knows asserts nothing."""

    WORKING = "working"
    READY = "ready"  # it waits for a prompt
    TYPING = "typing"  # there are words in its prompt box that were not sent
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
    asks: str = ""  # what it asks a person's leave for, if that is what it shows
    always: str = ""  # its answer to that for good, in its own words, if it offers one


class Terminal(Protocol):
    """The terminals that coders run in. All raise `Unavailable` when the run has none now."""

    def screen(self, run_id: str, *, history: int = 0) -> Screen:
        """The screen, with so many lines from before what is visible."""

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

    def permit(
        self,
        run_id: str,
        *,
        yes: bool,
        expected: str = "",
        announced: bool = True,
        always: bool = False,
    ) -> str:
        """Give or refuse the leave that its screen asks for; what was asked.

        `announced`: its program has reported that it asks, so its dialog may be yet to be drawn.
        `always`: give it as the dialog itself offers to, beyond this once. Raise `Refused`, having
        typed nothing, when it asks for none (`no_dialog`), not for what is `expected`
        (`asks_other`), or does not offer that (`no_always`).
        """


class Subject(NamedTuple):
    """A run to look at."""

    run: str
    coder: str
    project: str
    terminal: bool
    here: bool
    live: bool


class Sight(NamedTuple):
    """`cpu` is in percent of one core, `memory` in bytes: of its whole process tree.

    `exit` is the status that its program ended with, `screen` what a rule reads from its screen,
    `asks` what it asks a person's leave for, `always` its answer to that for good, if it has one.
    """

    doing: str
    by: str
    cpu: float | None = None
    memory: int | None = None
    exit: int | None = None
    screen: str = ""
    asks: str = ""
    always: str = ""


class GateSeen(NamedTuple):
    """How the gate of a run went, or goes. `output`: the end of what it printed."""

    command: str
    ended: bool
    code: int | None
    seconds: float
    output: str


class FileSeen(NamedTuple):
    """A file about a task; `at`: when it was written. `text`: the end of it, if that was asked for."""

    name: str
    size: int
    at: int
    text: str


class Agents(Protocol):
    """The agents of this host, seen and answered from outside."""

    @property
    def host(self) -> str:
        """The id of this host."""

    @property
    def shared(self) -> bool:
        """Whether other hosts use the same store."""

    def look(self, subjects: Iterable[Subject]) -> Mapping[str, Sight]:
        """What each does, by its run."""

    def seen(self, runs: Sequence[tuple[Task, Run]]) -> Mapping[str, SeenRun]:
        """What those of them in terminals of this host do and ask, by run; not what they use."""

    def permit(self, run_id: str, *, yes: bool, expected: str = "", always: bool = False) -> str:
        """See `Terminal.permit`."""

    def listener(self, subject: Subject) -> Listener:
        """A listener for the lines of the run's transcript."""

    def screen(self, run_id: str, *, history: int = 0, colours: bool = False) -> Screen:
        """See `Terminal.screen`; `colours`: with the escape sequences of colours in its text."""

    def interrupt(self, run_id: str) -> None:
        """Press Escape in its terminal."""

    def attach_argv(self, run_id: str) -> list[str]:
        """The command that attaches to its terminal, from one of this host."""

    def gate(self, run_id: str, *, tail: int) -> GateSeen | None:
        """The gate of a run; None when none has begun on this host. `tail`: bytes of its output."""

    def files(
        self, task_id: str, runs: Sequence[str], *, name: str = "", tail: int
    ) -> Sequence[FileSeen]:
        """The files about a task and these runs on this host; `name`: only that one, with its end."""

    def forks(self, coder: str, project: str) -> bool:
        """Whether the coder can continue a copy of a conversation."""

    def session(self, subject: Subject) -> str:
        """The coder's id of the conversation in its terminal; empty before the first turn."""


class SeatedAt(Protocol):
    """A terminal at which somebody sits: on this host, or on another one."""

    async def read(self) -> bytes:
        """What it shows from now on; empty once it has ended."""

    async def write(self, data: bytes) -> None:
        """Type this."""

    async def resize(self, size: tuple[int, int]) -> None:
        """Resize the terminal to so many rows and columns."""

    async def leave(self) -> None:
        """The agent, and others who sit there, go on."""
