"""What an agent is doing, and how we know.

Its process first: what is dead does nothing. Then its own words, which its hooks wrote. Last its
screen, where those leave a doubt: no program's hooks tell everything.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
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
    SaidKind.ANSWERED: Doing.WORKING,
    SaidKind.WANTS: Doing.PERMISSION,
    SaidKind.RESULT: Doing.WAITING,
    SaidKind.SESSION: Doing.IDLE,
}
_BESIDE = {SaidKind.TOOL, SaidKind.HEARD}  # what a dialog waits for may be told after it

DRAWN = 1.0  # seconds in which a screen shows what a hook has just told
SILENT = 3.0  # seconds without a word after which its screen may know better


def by_its_words(said: Iterable[tuple[SaidKind, str]]) -> Activity | None:
    """From what it said last; None when that tells nothing. A session alone says that it waits."""
    now: Activity | None = None
    for kind, text in said:
        doing = _MEANS.get(kind)
        if doing is None or (doing is Doing.IDLE and now is not None):
            continue
        if kind in _BESIDE and now is not None and now.doing is Doing.PERMISSION:
            continue
        now = Activity(doing, f"it said {kind}{': ' + text[:80] if text else ''}")
    return now


def in_doubt(said: Activity | None, *, silent: float) -> bool:
    """Whether its screen may know better than its words, of which the last came so long ago.

    No hook tells that a dialog was answered, and some programs have none for a turn that failed.
    """
    if said is None:
        return True
    return silent >= {Doing.PERMISSION: DRAWN, Doing.WORKING: SILENT}.get(said.doing, 1e9)


def by_its_screen(
    said: Activity | None, screen: str, rule: str, *, silent: float
) -> Activity | None:
    """What its screen adds to its words; None when it knows no better.

    `screen` is what a rule, which is data, says that it shows.
    """
    shows = f"its screen shows {rule}"
    doing = said.doing if said else None
    if screen == "wants" and doing is not Doing.PERMISSION:
        fresh = doing is Doing.WORKING and silent < DRAWN  # the answer may have just been given
        return None if fresh else Activity(Doing.PERMISSION, shows)
    if not in_doubt(said, silent=silent) or screen not in {"working", "ready"}:
        return None
    if said is None:
        return Activity(Doing.WORKING if screen == "working" else Doing.IDLE, shows)
    if screen == "working":
        answered = said.doing is Doing.PERMISSION
        return Activity(Doing.WORKING, f"{shows}, after {said.by}") if answered else None
    return Activity(Doing.WAITING, f"{shows}, and nothing came after {said.by}")


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
