"""What an agent is doing, and how we know: by its own words, else by its process."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from fleet.domain.transcript import SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterable


class Doing(StrEnum):
    STARTING = "starting"
    WORKING = "working"
    WAITING = "waiting"  # for a person: its turn has ended
    PERMISSION = "permission"  # a dialog is on its screen
    IDLE = "idle"  # it has not been told anything yet
    EXITED = "exited"
    UNKNOWN = "unknown"  # a look that failed asserts nothing


class Activity(NamedTuple):
    """`by` is the evidence: what kind it is, and what it said."""

    doing: Doing
    by: str


# Each of these ends what the ones before it had begun.
_MEANS = {
    SaidKind.TURN: Doing.WORKING,
    SaidKind.TOOL: Doing.WORKING,
    SaidKind.TOOL_RESULT: Doing.WORKING,
    SaidKind.HEARD: Doing.WORKING,
    SaidKind.WANTS: Doing.PERMISSION,
    SaidKind.RESULT: Doing.WAITING,
    SaidKind.SESSION: Doing.IDLE,
}


def by_its_words(said: Iterable[tuple[SaidKind, str]]) -> Activity | None:
    """From what it said last; None when that tells nothing. A session alone says that it waits."""
    now: Activity | None = None
    for kind, text in said:
        doing = _MEANS.get(kind)
        if doing is None or (doing is Doing.IDLE and now is not None):
            continue
        now = Activity(doing, f"it said {kind}{': ' + text[:80] if text else ''}")
    return now


def by_its_process(presence: str, code: int | None) -> Activity | None:
    match presence:
        case "exited":
            return Activity(Doing.EXITED, f"its keeper recorded status {code}")
        case "gone":
            return Activity(Doing.EXITED, "its keeper is dead and recorded nothing")
        case "never":
            return Activity(Doing.STARTING, "no keeper has started yet")
        case "unknown":
            return Activity(Doing.UNKNOWN, "its folder could not be looked at")
    return None
