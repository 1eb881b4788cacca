"""Starting coders under keepers, and looking after them."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


NOTHING: Mapping[str, Any] = MappingProxyType({})


class Launch(NamedTuple):
    """How to start one coder. `env` is the whole environment."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = NOTHING
    stdin: str | None = None  # the first thing it hears; None: nothing at all
    keep_stdin: bool = False  # more may follow; else its standard input ends there
    opening: str = ""  # what the adopter of the run needs to follow the conversation
    terminal: bool = False  # in a terminal of its own: what its hooks write is its transcript
    sandboxes: bool = False  # the program makes a sandbox of its own
    gateway: str = ""  # the address of the gateway that serves its model
    title: str = ""  # what people know it by, such as its branch: in the name of its terminal


class Presence(StrEnum):
    NEVER = "never"  # no keeper has started
    ALIVE = "alive"
    EXITED = "exited"  # the keeper recorded how the coder ended
    GONE = "gone"  # the keeper is provably dead and recorded nothing
    UNKNOWN = "unknown"  # a look that failed asserts nothing


class Look(NamedTuple):
    presence: Presence
    code: int | None = None
    stderr: str = ""
    began: float | None = None  # of one that is alive: when, by `Clock.since_boot`
    expired: bool = False  # its keeper ended it, because its lease was not renewed
    exceeded: str = ""  # the cap of its container that it met: `memory` or `pids`
    cap: int = 0  # how much of that there was: bytes, or processes


class Launcher(Protocol):
    """Starts coders under keepers, which outlive the process that started them."""

    def launch(self, run_id: str, launch: Launch) -> None:
        """Once per run, however often it is called and by however many."""

    def look(self, run_id: str) -> Look: ...

    def is_used(self, run_id: str) -> bool:
        """Whether something of a run with this id is here: of a store that was replaced since."""

    def tell(self, run_id: str, text: str, *, key: str) -> None:
        """Put text on the coder's standard input, once for every key however often it is called.

        Raise `Unavailable` when it is in a terminal: there, people and `Terminal` speak to it.
        """

    def delivered(self, run_id: str) -> list[str]:
        """The keys of all that it was told, in order."""

    def close(self, run_id: str) -> None:
        """End the coder's standard input, after all that it has been told."""

    def opening(self, run_id: str) -> str:
        """The `opening` that this run was launched with."""

    def first(self, run_id: str) -> str:
        """The `stdin` that it was launched with, or nothing. In a terminal it is to be pasted."""

    def stop(self, run_id: str, *, grace: float) -> None:
        """Ask the keeper to end its coder: politely, then after `grace` seconds not."""

    def end(self, run_id: str) -> bool:
        """End whatever is left of the run, and let nothing of it start later.

        True when every process of it is provably gone.
        """

    def renew(self, run_ids: Sequence[str], *, until: float) -> None:
        """Let their keepers end themselves then (by `Clock.since_boot`), unless renewed again."""
