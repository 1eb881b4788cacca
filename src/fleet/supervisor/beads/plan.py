"""Which issues to take from a beads database, and which updates to send: pure decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
from fleet.domain.event import Kind
from fleet.domain.run import Ending

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fleet.domain.event import Event
    from fleet.ports import Bead

LABEL = "beads:"
MAX_CHARACTERS = 2000  # of one update
UNLUCKY = frozenset(
    {Ending.FAILED, Ending.TIMED_OUT, Ending.STALLED, Ending.OUT_OF_MEMORY, Ending.LOST}
)


class Update(NamedTuple):
    """A call of `bd` about one issue; `number` is that of the event that caused it."""

    number: int
    bead: str
    act: str
    text: str = ""


class IssuesToTake(NamedTuple):
    """Issues to claim, and issues to adopt: an earlier supervisor claimed those and then died."""

    claim: tuple[Bead, ...]
    adopt: tuple[Bead, ...]


def bead_of(labels: Collection[str]) -> str:
    return next((name.removeprefix(LABEL) for name in labels if name.startswith(LABEL)), "")


def what_to_take(
    ready: Sequence[Bead],
    claimed: Sequence[Bead],
    known: Collection[str],
    again: Collection[str],
    room: int,
) -> IssuesToTake:
    """`known` issues are tasks already; those in `again` have ended, so ready means reopened."""
    adopt = tuple(b for b in claimed if b.id not in known)
    free = [b for b in ready if b.id not in known or b.id in again]
    return IssuesToTake(tuple(free[: max(0, room - len(adopt))]), adopt)


def updates_for(event: Event, bead: str, *, question: str, why: str) -> list[Update]:
    """`question` is the text of the message that the event names; `why` says how the task ended."""
    acts = [(act, text[:MAX_CHARACTERS]) for act, text in _acts_for(event, question, why)]
    return [Update(event.number, bead, act, text) for act, text in acts]


def _acts_for(event: Event, question: str, why: str) -> list[tuple[str, str]]:
    match event.type, str(event.data.get("state", "")):
        case Kind.MESSAGE_ASKED, _:
            number = event.data.get("message", "")
            return [("comment", f"QUESTION ({number}): {question}\nfleet answer {number} TEXT")]
        case Kind.RUN_ENDED, _ if event.data.get("ending") in UNLUCKY:
            return [("comment", f"{event.run} {event.data['ending']}: {event.data['detail']}")]
        case (Kind.TASK_SETTLED, "done") | (Kind.TASK_CLOSED, _):
            return [("close", why or "Done.")]
        case Kind.TASK_SETTLED, "failed":
            return [("block", why or "It failed.")]
        case Kind.TASK_SETTLED, "review":
            return [("comment", f"Done as far as its agent knows: fleet close {event.task}")]
        case (Kind.TASK_SETTLED, "cancelled") | (Kind.TASK_CANCELLED, _):
            return [("comment", f"Cancelled in the fleet: {why}"), ("release", "")]
        case Kind.TASK_REOPENED, _:
            return [("resume", "")]
    return []
