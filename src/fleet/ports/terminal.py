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
    """What a screen shows, as told by rules; unknown if no rule matches."""

    WORKING = "working"
    READY = "ready"  # it waits for a prompt
    TYPING = "typing"  # its prompt box has unsent text
    WANTS = "wants"  # it asks for a permission, which typed keys would answer
    PANEL = "panel"  # the program shows a panel, such as that of /help; Esc closes it
    FIRST_START = "first-start"  # it asks what it asks once: a theme, a login, trust in a folder
    UNKNOWN = "unknown"


class Screen(NamedTuple):
    """What a run's terminal shows; `rule`: the one that told its state."""

    text: str
    cursor: tuple[int, int] = (0, 0)  # column and line, from the upper left
    alive: bool = True
    status: int | None = None  # the program's exit status, which is not known at once
    state: ScreenState = ScreenState.UNKNOWN
    rule: str = ""
    watchers: int = 0  # how many people are attached
    asks: str = ""  # what its dialog, if it shows one, asks for permission to do
    always: str = ""  # the text of the dialog's option to allow that for good, if it has one


class Terminal(Protocol):
    """The terminals of runs. All methods raise `Unavailable` when the run has none now."""

    def screen(self, run_id: str, *, history: int = 0) -> Screen:
        """Return the screen, and `history` lines from above it."""

    def is_ready(self, run_id: str) -> bool:
        """Whether text may be pasted: the program waits for a prompt, and nobody is typing."""

    def paste(self, run_id: str, text: str) -> None:
        """Type this text unchanged, then Enter, with no other text in between.

        This does not prove that the program accepted it. Raise `Refused`, having typed nothing,
        when the program has ended (`exited`), shows a dialog that the keys would answer
        (`wants_permission`) or a screen that takes them (`panel`, `first-start`), or has unsent
        text in its prompt box (`typing`); `BadInput` when the text cannot be typed.
        """

    def press(self, run_id: str, key: str) -> None:
        """Press one of the keys `Enter`, `Escape`, `C-c`, `C-u` and `C-g`."""

    def permit(
        self,
        run_id: str,
        *,
        yes: bool,
        expected: str = "",
        announced: bool = True,
        always: bool = False,
    ) -> str:
        """Answer the permission dialog on the screen; return what it asked.

        `announced`: the program has reported the dialog, which may not be drawn yet. `always`:
        choose the dialog's option to allow it for good. Raise `Refused`, having typed nothing,
        when there is no dialog (`no_dialog`), it asks for something other than `expected`
        (`asks_other`), or it has no such option (`no_always`).
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
    """What an agent is doing. `cpu`: percent of one core, `memory`: bytes, of its process tree.

    `exit`: its program's exit status; `screen`: the state of its screen; `asks`: what it asks for
    permission to do; `always`: its dialog's option to allow that for good, if it has one.
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
    """The progress or result of a run's gate. `output`: the end of what it printed."""

    command: str
    ended: bool
    code: int | None
    seconds: float
    output: str


class FileSeen(NamedTuple):
    """A file about a task. `at`: when it was written; `text`: its end, if requested."""

    name: str
    size: int
    at: int
    text: str


class Agents(Protocol):
    """Observes the agents of this host and answers their dialogs."""

    @property
    def host(self) -> str:
        """The id of this host."""

    @property
    def shared(self) -> bool:
        """Whether other hosts use the same store."""

    def look(self, subjects: Iterable[Subject]) -> Mapping[str, Sight]:
        """Return what each is doing, by run."""

    def seen(self, runs: Sequence[tuple[Task, Run]]) -> Mapping[str, SeenRun]:
        """Return what those in terminals of this host do and ask, by run, without their usage."""

    def permit(self, run_id: str, *, yes: bool, expected: str = "", always: bool = False) -> str:
        """See `Terminal.permit`."""

    def listener(self, subject: Subject) -> Listener:
        """Return a listener for the lines of the run's transcript."""

    def screen(self, run_id: str, *, history: int = 0, colours: bool = False) -> Screen:
        """See `Terminal.screen`; `colours`: with the escape sequences of colours in its text."""

    def interrupt(self, run_id: str) -> None:
        """Press Escape in its terminal."""

    def attach_argv(self, run_id: str) -> list[str]:
        """Return the command that attaches to its terminal on this host."""

    def gate(self, run_id: str, *, tail: int) -> GateSeen | None:
        """Return a run's gate, None if none began on this host. `tail`: bytes of its output."""

    def files(
        self, task_id: str, runs: Sequence[str], *, name: str = "", tail: int
    ) -> Sequence[FileSeen]:
        """Return this host's files about a task and its runs; `name`: only one, with its end."""

    def forks(self, coder: str, project: str) -> bool:
        """Whether the coder can continue a copy of a conversation."""

    def session(self, subject: Subject) -> str:
        """Return the coder's session id in its terminal; empty before the first turn."""


class SeatedAt(Protocol):
    """An opened terminal of this or another host."""

    async def read(self) -> bytes:
        """Wait for output and return it; empty once the terminal has ended."""

    async def write(self, data: bytes) -> None:
        """Send this input to the terminal."""

    async def resize(self, size: tuple[int, int]) -> None:
        """Resize the terminal to so many rows and columns."""

    async def leave(self) -> None:
        """Detach; the agent and others at the terminal go on."""
