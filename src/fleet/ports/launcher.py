"""Start coders under keepers, and watch, steer and end them."""

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
    stdin: str | None = None  # its first input; None: it has no standard input
    keep_stdin: bool = False  # keep its standard input open for more
    opening: str = ""  # what a supervisor that adopts the run needs to read its transcript
    terminal: bool = False  # run it in a terminal; its hooks then write its transcript
    sandboxes: bool = False  # the program has its own sandbox
    gateway: str = ""  # the address of the gateway that serves its model
    title: str = ""  # the name of its terminal, such as its branch


class Presence(StrEnum):
    NEVER = "never"  # no keeper has started
    ALIVE = "alive"
    EXITED = "exited"  # the keeper recorded how the coder ended
    GONE = "gone"  # the keeper is provably dead and recorded nothing
    UNKNOWN = "unknown"  # the look failed


class Look(NamedTuple):
    presence: Presence
    code: int | None = None
    stderr: str = ""
    began: float | None = None  # when the coder, if alive, was started, by `Clock.since_boot`
    expired: bool = False  # its keeper ended it because its lease was not renewed
    exceeded: str = ""  # the cap of its container that it exceeded: `memory` or `pids`
    cap: int = 0  # that cap, in bytes or processes


class Launcher(Protocol):
    """Starts coders under keepers, which outlive the process that started them."""

    def launch(self, run_id: str, launch: Launch) -> None:
        """Start the run's coder; further calls for the same run, by any process, do nothing."""

    def look(self, run_id: str) -> Look: ...

    def is_used(self, run_id: str) -> bool:
        """Whether a run of an earlier store has left files under this id."""

    def tell(self, run_id: str, text: str, *, key: str) -> None:
        """Write text to the coder's standard input; further calls with the same key do nothing.

        Raise `Unavailable` when it is in a terminal, where people and `Terminal` type.
        """

    def delivered(self, run_id: str) -> list[str]:
        """Return the keys of all texts that were delivered, in order."""

    def close(self, run_id: str) -> None:
        """Close the coder's standard input, after all texts that were written to it."""

    def opening(self, run_id: str) -> str:
        """Return the `Launch.opening` of this run."""

    def first(self, run_id: str) -> str:
        """Return the run's `Launch.stdin`, or nothing; in a terminal the caller pastes it."""

    def stop(self, run_id: str, *, grace: float) -> None:
        """Ask the keeper to end its coder: with a signal, and after `grace` seconds by force."""

    def end(self, run_id: str) -> bool:
        """End all processes of the run, and keep any from starting later.

        Return whether every process of it is provably gone.
        """

    def renew(self, run_ids: Sequence[str], *, until: float) -> None:
        """Renew leases until this time (of `Clock.since_boot`), when keepers end their runs."""
