"""What an agent is doing, and how we know.

The process comes first: a dead one does nothing. Then what the program's hooks wrote into the
transcript. The screen comes last, where those leave a doubt: no program's hooks report everything.
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
    PERMISSION = "permission"  # a dialog is on its screen
    PANEL = "panel"  # a panel of its program is open, such as that of /help; Esc closes it
    FIRST_START = "first-start"  # its program asks what it asks a person once: theme, login, trust
    IDLE = "idle"  # it has not been told anything yet
    EXITED = "exited"
    UNKNOWN = "unknown"  # we could not look, which proves nothing


class Activity(NamedTuple):
    """`by` is the evidence, in words for `fleet explain`."""

    doing: Doing
    by: str


class SeenRun(NamedTuple):
    """What was seen of a run from outside. `words`: what its screen asks, as far as it says.

    `always`: the answer to that for good which the screen offers.
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
_BESIDE = {SaidKind.TOOL, SaidKind.HEARD}  # may still be reported while a dialog is open

MOST_SAID = 80  # characters of its words that are shown as evidence
DRAWN = 1.0  # seconds that a screen may take to show what a hook has just reported
SILENT = 3.0  # seconds without a transcript line after which the screen may know better


def by_its_words(words: Iterable[tuple[SaidKind, str]]) -> Activity | None:
    """The activity, by the newest lines of the transcript; None when they tell nothing.

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
    """Whether the screen may know better than the transcript.

    `silent`: seconds since the last line. No hook reports that a dialog was answered, and some
    programs have none for a turn that failed.
    """
    if activity is None:
        return True
    return silent >= {Doing.PERMISSION: DRAWN, Doing.WORKING: SILENT}.get(activity.doing, 1e9)


def by_its_screen(
    activity: Activity | None, screen: str, rule: str, *, silent: float
) -> Activity | None:
    """What the screen adds to the transcript; None when it adds nothing.

    `screen` is the state that a screen rule found, and `rule` is the name of that rule.
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
    """What it asks leave for: in the hook's words, unless its screen asks about something else."""
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
