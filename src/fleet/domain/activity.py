"""What an agent is doing, and how we know.

The state of its process counts first, then what the program's hooks wrote into the transcript. No
program's hooks report everything, so the screen decides where the transcript leaves a doubt.
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
    WAITING = "waiting"  # its turn has ended, and it waits for a person
    PERMISSION = "permission"  # its screen shows a dialog
    PANEL = "panel"  # a panel of its program is open, such as that of /help; Esc closes it
    FIRST_START = "first-start"  # its program asks what it asks only once: theme, login, trust
    IDLE = "idle"  # it has not been told anything yet
    EXITED = "exited"
    UNKNOWN = "unknown"  # we could not look


class Activity(NamedTuple):
    """`by` is the evidence, in words for `fleet explain`."""

    doing: Doing
    by: str


class SeenRun(NamedTuple):
    """What a run is doing, as seen from outside. `words`: what its screen asks.

    `always`: the answer on its screen that allows this from now on, if there is one.
    """

    doing: str
    words: str = ""
    always: str = ""


# The newest of these lines decides.
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
_BESIDE = {SaidKind.TOOL, SaidKind.HEARD}  # lines that may be written while a dialog is open

MOST_SAID = 80  # characters of a transcript line that are quoted as evidence
DRAWN = 1.0  # seconds that a screen may take to show what a hook reported
SILENT = 3.0  # seconds without a transcript line, after which we look at the screen


def by_its_words(words: Iterable[tuple[SaidKind, str]]) -> Activity | None:
    """The activity according to the newest lines of the transcript; None when no line tells.

    A session line alone means that the program has started and was given nothing to do.
    """
    activity: Activity | None = None
    for kind, text in words:
        doing = _MEANS.get(kind)
        if doing is None or (doing is Doing.IDLE and activity is not None):
            continue
        if kind in _BESIDE and activity is not None and activity.doing is Doing.PERMISSION:
            continue
        quote = " ".join(text.split())
        if len(quote) > MOST_SAID:
            quote = f"{quote[: MOST_SAID - 1]}…"
        activity = Activity(doing, f"it said {kind}{': ' + quote if quote else ''}")
    return activity


def in_doubt(activity: Activity | None, *, silent: float) -> bool:
    """Whether to look at the screen, because the transcript may be behind.

    `silent`: seconds since the last line. No hook reports that a dialog was answered, and some
    programs have no hook for a turn that failed.
    """
    if activity is None:
        return True
    return silent >= {Doing.PERMISSION: DRAWN, Doing.WORKING: SILENT}.get(activity.doing, 1e9)


def by_its_screen(
    activity: Activity | None, screen: str, rule: str, *, silent: float
) -> Activity | None:
    """The activity according to the screen; None when the screen does not correct the transcript.

    `screen` is the state that a screen rule recognized, and `rule` is the name of that rule.
    """
    shows = f"its screen shows {rule}"
    doing = activity.doing if activity else None
    if screen == "wants" and doing is not Doing.PERMISSION:
        fresh = doing is Doing.WORKING and silent < DRAWN  # the answer may have just been given
        return None if fresh else Activity(Doing.PERMISSION, shows)
    if screen in {Doing.PANEL, Doing.FIRST_START}:
        busy = doing is Doing.WORKING and silent < SILENT
        return None if busy else Activity(Doing(screen), shows)
    if not in_doubt(activity, silent=silent) or screen not in {"working", "ready"}:
        return None
    if activity is None:
        return Activity(Doing.WORKING if screen == "working" else Doing.IDLE, shows)
    if screen == "working":
        answered = activity.doing is Doing.PERMISSION
        return Activity(Doing.WORKING, f"{shows}, after {activity.by}") if answered else None
    return Activity(Doing.WAITING, f"{shows}, and nothing came after {activity.by}")


def wish(by_hook: str, on_screen: str) -> str:
    """What the agent asks permission for: as its hook says, unless its screen shows another request."""
    about = "".join(by_hook.partition(": ")[2].split())[:40]
    if not on_screen or (about and about in "".join(on_screen.split())):
        return by_hook or on_screen
    return on_screen


def by_its_process(presence: str, code: int | None) -> Activity | None:
    match presence:
        case "exited":
            return Activity(Doing.EXITED, f"its keeper recorded status {code}")
        case "gone":
            return Activity(Doing.EXITED, "its keeper is dead and recorded nothing")
        case "never":
            return Activity(Doing.STARTING, "no keeper has started yet")
        case "unknown":
            return Activity(Doing.UNKNOWN, "its run folder could not be read")
    return None
