"""What a coder reports, line by line, and the outcome of its run: a pure fold."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.run import Checkpoint, Ending, Outcome, Usage, Wanted

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_WORDS = 10_000  # characters of a text that are kept; the transcript has all of it


class SaidKind(StrEnum):
    SESSION = "session"  # the program's own id for this conversation, to resume it
    TURN = "turn"  # a turn has begun: the program has taken what we sent
    TEXT = "text"
    THINKING = "thinking"
    TOOL = "tool"
    TOOL_RESULT = "tool_result"
    WANTS = "wants"  # it asks a person for permission, and waits
    ANSWERED = "answered"  # the person has answered; only some programs report this
    USAGE = "usage"
    LIMIT = "limit"  # stopped by a rate limit; the program's own retries do not count
    SPENT = "spent"  # it ended because its budget is spent
    FULL = "full"  # it ended because its context is full
    ERROR = "error"
    RESULT = "result"  # a turn has ended
    HEARD = "heard"  # a message that we sent has entered the conversation
    REPLY = "reply"  # what we must send back by its protocol: `text`, once for every `name`


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a coder reported. `total`: `usage` is for the whole run, not an addition."""

    kind: SaidKind
    text: str = ""
    name: str = ""
    usage: Usage | None = None
    total: bool = False
    failed: bool = False
    resume_at: int = 0
    window: int = 0  # the context size of its model, in tokens, if the program reports it


@dataclass(frozen=True, slots=True)
class Conversation:
    """A run's transcript so far. A supervisor that adopts the run rebuilds it from line one."""

    lines: int = 0
    turns: int = 0
    ended_turns: int = 0
    heard_words: int = 0
    open_tools: int = 0
    wants: str = ""  # the permission that it asks a person for
    session: str = ""
    last: str = ""
    error: str = ""
    failed: bool = False
    limited: bool = False
    resume_at: int = 0
    peak_context: int = 0
    window: int = 0
    full: bool = False  # the program reported that its context is full
    spent: str = ""  # what the program reported when its budget was spent
    usage: Usage = field(default_factory=Usage)

    @property
    def at_rest(self) -> bool:
        """Whether at least one turn has ended, and none is going on."""
        return 0 < self.ended_turns >= self.turns


def hear_all(so_far: Conversation, items: Iterable[Said]) -> Conversation:
    """Fold these items. Of consecutive texts only the last is folded: there may be millions."""
    text: Said | None = None
    for item in items:
        if item.kind is SaidKind.TEXT:
            text = item
            continue
        if text is not None:
            so_far, text = hear(so_far, text), None
        so_far = hear(so_far, item)
    return so_far if text is None else hear(so_far, text)


def hear(so_far: Conversation, item: Said) -> Conversation:
    match item.kind:
        case SaidKind.SESSION:
            return replace(so_far, session=item.text or so_far.session)
        case SaidKind.TURN:
            return replace(so_far, turns=so_far.turns + 1, failed=False, limited=False, wants="")
        case SaidKind.WANTS:
            return replace(so_far, wants=_head(item.text or item.name) or "something")
        case SaidKind.ANSWERED:
            return replace(so_far, wants="")
        case SaidKind.TEXT:
            return replace(so_far, last=_head(item.text))
        case SaidKind.THINKING | SaidKind.REPLY:
            return so_far
        case SaidKind.HEARD:
            return replace(so_far, heard_words=so_far.heard_words + 1)
        case SaidKind.TOOL:
            what = ": ".join(filter(None, (item.name, item.text)))
            return replace(so_far, open_tools=so_far.open_tools + 1, last=_head(what))
        case SaidKind.TOOL_RESULT:
            return replace(so_far, open_tools=max(0, so_far.open_tools - 1), wants="")
        case SaidKind.USAGE:
            return _count(so_far, item)
        case SaidKind.SPENT:
            return replace(so_far, spent=_head(item.text) or "Its budget is spent.")
        case SaidKind.FULL:
            return replace(so_far, full=True, error=_head(item.text) or so_far.error)
        case SaidKind.LIMIT:
            error = _head(item.text)
            return replace(so_far, limited=True, resume_at=item.resume_at, error=error)
        case SaidKind.ERROR:
            return replace(so_far, error=_head(item.text))
        case SaidKind.RESULT:
            heard, text = _count(so_far, item), _head(item.text)
            return replace(
                heard,
                ended_turns=heard.ended_turns + 1,
                open_tools=0,
                wants="",
                failed=item.failed,
                last=text or heard.last,
                error=text if item.failed and text else heard.error,
            )


def _count(so_far: Conversation, item: Said) -> Conversation:
    new = item.usage
    if new is None:
        return so_far
    old = so_far.usage
    usage = replace(new, context=new.context or old.context) if item.total else old + new
    peak = max(so_far.peak_context, usage.context)
    return replace(so_far, usage=usage, peak_context=peak, window=item.window or so_far.window)


FIRST_SIGNAL = 128  # exit statuses above this mean that a signal ended the program
NOT_FOUND = 127  # the exit status of a keeper, or a shell, that did not find the program


@dataclass(frozen=True, slots=True)
class Exit:
    """How a coder's process ended, as its keeper recorded it."""

    code: int | None
    stderr: str = ""
    exceeded: str = ""  # `memory` or `pids`: the limit of its container that it exceeded
    cap: int = 0  # that limit: bytes, or processes


class Cut(NamedTuple):
    """Why the supervisor ended a run."""

    ending: Ending
    why: str = ""


def judge(
    heard: Conversation,
    ended: Exit,
    *,
    parked: bool,
    wanted: Wanted,
    cut: Cut | None,
    commit: str,
    in_turns: bool = False,
    closed: str = "",
) -> Outcome:
    """The outcome of a run whose process has ended.

    `wanted`: what a person wanted done to the run; `cut`: why the supervisor ended it; `closed`: the
    reason that its agent gave when it closed the task. `in_turns`: its coder reports the end of every
    turn, so a run without such a report was cut short.
    """
    ending, detail = _ending(heard, ended, parked=parked, wanted=wanted, cut=cut, closed=closed)
    if ending is Ending.SUCCEEDED and in_turns and not heard.at_rest and not closed:
        ending, detail = Ending.FAILED, "It ended in the middle of its turn."
    if ending is Ending.FAILED and in_turns and could_not_resume(heard, ended):
        heard = replace(heard, session="")  # the next run starts a new conversation
        ending, detail = Ending.LOST, f"Its conversation could not be resumed. {detail}"
    return Outcome(
        ending=ending,
        detail=detail,
        exit_code=ended.code,
        checkpoint=Checkpoint(commit=commit, session=heard.session, summary=heard.last[:2000]),
        resume_at=heard.resume_at if ending is Ending.RATE_LIMITED else 0,
        usage=heard.usage,
        again=not (ending is Ending.FAILED and is_missing(ended)),
    )


def could_not_resume(heard: Conversation, ended: Exit) -> bool:
    """Whether the program failed before the first turn of a conversation that it was to resume.

    Then its own files of the conversation are missing: it was killed before it wrote them, or they were
    deleted. An ending by a signal does not show that.
    """
    if not heard.session or heard.turns or is_missing(ended):
        return False
    return heard.failed if ended.code == 0 else 0 < (ended.code or 0) < FIRST_SIGNAL


def is_missing(ended: Exit) -> bool:
    """Whether the keeper did not find the program: the next run would not either."""
    return ended.code == NOT_FOUND and ended.stderr.lstrip().startswith("fleet: ")


def _ending(
    heard: Conversation, ended: Exit, *, parked: bool, wanted: Wanted, cut: Cut | None, closed: str
) -> tuple[Ending, str]:
    words = heard.error or _tail(ended.stderr)
    if wanted is Wanted.CANCEL:
        return Ending.CANCELLED, "Cancelled."
    if wanted is Wanted.STOP:
        return Ending.STOPPED, "Stopped."
    if wanted is Wanted.YIELD:
        return Ending.YIELDED, "All agents of its host were stopped."
    if closed:
        return Ending.SUCCEEDED, closed
    if cut is not None:
        return cut.ending, cut.why or _CUT.get(cut.ending, words)
    if parked:
        return Ending.ASKED, heard.last
    if heard.spent:
        return Ending.OVER_BUDGET, heard.spent
    if heard.full:
        return Ending.CONTEXT_FULL, words
    if heard.limited:
        return Ending.RATE_LIMITED, words or "Rate limited."
    if ended.exceeded == "memory" and (ended.code != 0 or heard.failed):
        return Ending.OUT_OF_MEMORY, _exceeded(ended)
    if ended.exceeded and ended.code != 0:
        words = f"{_exceeded(ended)} {words}"
    if ended.code != 0:
        how = "It ended without a status" if ended.code is None else f"Exit status {ended.code}"
        return Ending.FAILED, f"{how}. {words}".strip()
    if heard.failed:
        return Ending.FAILED, words or "It reported an error."
    return Ending.SUCCEEDED, heard.last


def _exceeded(ended: Exit) -> str:
    if ended.exceeded == "memory":
        return f"It exceeded the memory of its container, {ended.cap >> 20} MiB."
    return f"It reached the limit of its container, {ended.cap} processes."


_CUT = {
    Ending.TIMED_OUT: "Its time limit ran out.",
    Ending.STALLED: "It printed nothing for too long, and no tool was running.",
    Ending.CONTEXT_FULL: "Its context was full.",
    Ending.LOST: "Its keeper process disappeared.",
}


def _head(text: str) -> str:
    """The first `MOST_WORDS` characters: the text goes into the store and into events."""
    return text if len(text) <= MOST_WORDS else text[:MOST_WORDS] + "…"


def _tail(text: str, size: int = 500) -> str:
    text = text.strip()
    return text if len(text) <= size else "…" + text[-size:]
