"""What happened, as a sentence for a person, with what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.cli.terminal.human import SECOND, clock, duration, money
from fleet.cli.terminal.layout import paint
from fleet.cli.terminal.log_lines import words_of
from fleet.cli.terminal.measure import fit, harmless, width, wrap
from fleet.domain.data import NamedTuple
from fleet.domain.errors import NotFound
from fleet.domain.event import Kind
from fleet.domain.run import Ending, Outcome, has_work
from fleet.domain.task import TaskState, mend_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.cli.terminal.view import Style
    from fleet.domain.event import Event
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.ports import Store

LONGEST_TEXT = 300  # characters of a reason, a question or a title
NOTHING = "changed nothing"
INDENT = len("12:34:56 ")
SILENT = frozenset(  # another event says the same to a person, or nobody needs to know at once
    {
        *(Kind.RUN_ENDED, Kind.RUN_STARTED, Kind.RUN_PROMPTED, Kind.RUN_CLOSED),
        *(Kind.MESSAGE_HEARD, Kind.MESSAGE_TYPED, Kind.SUPERVISOR_WARNED),
    }
)
OF_TEAMS = frozenset(  # what agents tell each other and who may do what, not how the work goes on
    {
        *("mail", "chat", "board", "checkpoint", "memory", "file"),
        *("enrolment", "member", "session", "token", "inbox", "view"),
    }
)
CHANGES: Mapping[Kind, str] = {  # of a task; with the event's data, and who did it
    Kind.TASK_ADDED: "was added",
    Kind.TASK_ASSIGNED: "was given to {assignee}",
    Kind.TASK_BEGUN: "was started by {actor}, by hand",
    Kind.TASK_CANCELLED: "was cancelled",
    Kind.TASK_CLOSED: "was closed as done",
    Kind.TASK_EDITED: "was changed ({what})",
    Kind.TASK_LANDED: "landed on {onto}",
    Kind.TASK_LEFT: "was put back by {actor}",
    Kind.TASK_NEEDS: "now waits for {needs}",
    Kind.TASK_NEEDS_NOT: "no longer waits for {needs}",
    Kind.TASK_PAUSED: "was paused",
    Kind.TASK_REOPENED: "is open again",
    Kind.TASK_RESUMED: "can start again",
    Kind.RUN_ADOPTED: "was found running, and is watched again",
    Kind.RUN_ATTACHED: "has {actor} attached to its terminal",
    Kind.RUN_COMMITTED: "left uncommitted work, which Fleet committed ({files} changed)",
    Kind.RUN_INTERRUPTED: "was interrupted by {actor}",
    Kind.RUN_PERMITTED: "asked for permission, and {actor} answered {answer}",
    Kind.RUN_STOP_WANTED: "is being stopped",
    Kind.LANDING_DROPPED: "no longer waits to land on {onto}",
    Kind.LANDING_GIVEN: "has its landing on {onto} looked after by {to}",
    Kind.LANDING_HELD: "cannot land on {onto} yet",
    Kind.LANDING_MOVED: "was moved in the queue for {onto}",
    Kind.LANDING_QUEUED: "waits to land on {onto}",
    Kind.LANDING_RETURNED: "could not land on {onto} and goes back to its agent",
    Kind.PULL_OPENED: "has a pull request onto {onto}",
    Kind.PULL_CLOSED: "had its pull request closed without a merge",
    Kind.RACE_BEGUN: "is done by several agents, and the best solution is picked",
    Kind.MESSAGE_ANSWERED: "got an answer",
    Kind.MESSAGE_POSTED: "got a comment",
    Kind.MESSAGE_SENT: "was sent a message",
    Kind.MESSAGE_WITHDRAWN: "had a message withdrawn",
    Kind.SWARM_ENDED: "was ended, with its agents",
    Kind.WORKTREE_COMMITTED: "had its worktree committed",
    Kind.WORKTREE_MERGED: "was merged into {onto}",
    Kind.WORKTREE_PROPOSED: "has a pull request",
    Kind.WORKTREE_PUSHED: "was pushed",
}
ABOUT = ("title", "url", "asks", "why")  # the data of an event that says more, if it is there
STYLES: Mapping[Kind, Style] = {
    Kind.LANDING_HELD: "yellow",
    Kind.LANDING_RETURNED: "yellow",
    Kind.PULL_CLOSED: "yellow",
    Kind.TASK_LANDED: "green",
}
AGAIN: Mapping[Ending, str] = {
    Ending.FAILED: "failed and is tried again",
    Ending.TIMED_OUT: "ran out of time and is tried again",
    Ending.STALLED: "stalled and is tried again",
    Ending.OUT_OF_MEMORY: "ran out of memory and is tried again",
    Ending.LOST: "was lost and starts again",
    Ending.CONTEXT_FULL: "filled its context and continues in a new conversation",
    Ending.RATE_LIMITED: "hit a rate limit and continues",
    Ending.STOPPED: "was stopped and is paused",
    Ending.YIELDED: "was stopped; the next `fleet run` continues it",
    Ending.SUCCEEDED: "has an unread message and starts again",
}


class Sentence(NamedTuple):
    """`head: about → next`; the style is the head's."""

    head: str
    about: str = ""
    next: str = ""
    style: Style = ""


def sentence_of(event: Event, store: Store) -> Sentence | None:
    """The sentence for an event; None when no person needs to see it."""
    if event.type in SILENT or event.type.partition(".")[0] in OF_TEAMS:
        return None
    try:
        return _sentence(event, store)
    except NotFound:  # pruned since
        return _other(event)


def _sentence(event: Event, store: Store) -> Sentence | None:
    match event.type:
        case Kind.RUN_CLAIMED:
            return _claimed(event, store.task(event.task))
        case Kind.TASK_SETTLED:
            state = str(event.data.get("state", ""))
            return _settled(state, store.task(event.task), store.run(event.run), event.at)
        case Kind.MESSAGE_ASKED:
            message = store.message(str(event.data["message"]))
            options = "  ".join(
                f"{n}) {option}" for n, option in enumerate(message.details.options, 1)
            )
            about = f"{message.text} {options}".strip()
            return Sentence(
                f"{event.task} asks", about, f"fleet answer {event.task} TEXT", "yellow"
            )
        case Kind.RACE_PICKED:
            winner = str(event.data.get("winner", ""))
            step = f"fleet diff {winner}, fleet pick {event.task}"
            about = str(event.data.get("why", ""))
            return Sentence(f"{winner} is the best of {event.task}", about, step, "green")
        case Kind.RACE_UNDECIDED:
            about, step = str(event.data.get("why", "")), f"fleet pick {event.task}"
            return Sentence(f"{event.task} needs your choice", about, step, "yellow")
        case Kind.GATE_FLAKY:
            head = f"The gate of {event.data.get('onto', '')} is flaky"
            about = f"it failed and then passed on the same files: {event.data.get('gate', '')}"
            return Sentence(head, about, style="yellow")
        case Kind.TRAIN_PAUSED:
            return Sentence(f"Nothing lands on {event.data.get('onto', '')} until it is resumed")
        case Kind.TRAIN_RESUMED:
            return Sentence(f"Work lands on {event.data.get('onto', '')} again")
        case Kind.HOST_DRAINED:
            return Sentence(f"{event.data.get('host', '')} starts no new runs until it is resumed")
        case Kind.HOST_RESUMED:
            return Sentence(f"{event.data.get('host', '')} starts runs again")
        case Kind.HOST_JOINED:
            return Sentence(f"{event.data.get('host', '')} joined with its invitation")
        case Kind.HOST_FORGOTTEN:
            return Sentence(f"{event.actor} removed the host {event.data.get('host', '')}")
        case Kind.ALERT_RAISED:
            return Sentence("Alert", str(event.data.get("text", "")), style="yellow")
        case kind if kind in CHANGES and event.task:
            return _change(event, store.task(event.task))
    return _other(event)


def _change(event: Event, task: Task) -> Sentence:
    data = {name: str(value) for name, value in event.data.items()}
    if files := data.get("files"):
        data["files"] = f"{files} file" if files == "1" else f"{files} files"
    words = CHANGES[event.type].format_map(_EventData(data, actor=event.actor))
    about = next((data[name] for name in ABOUT if data.get(name)), task.title)
    return Sentence(f"{task.id} {words}", about, style=STYLES.get(event.type, ""))


class _EventData(dict[str, str]):
    """The data of an event, which another release may have recorded with less of it."""

    def __missing__(self, name: str) -> str:
        return "?"


def _claimed(event: Event, task: Task) -> Sentence:
    number = event.run.rpartition(".")[2]
    how = "starts" if number == "1" else f"starts again (run {number})"
    return Sentence(f"{task.id} {how}", f"{task.title}  ({event.data.get('coder', '')})")


def _other(event: Event) -> Sentence:
    about = event.run or event.task
    return Sentence(" ".join(filter(None, (about, event.type, words_of(event.data)))))


def _settled(state: str, task: Task, run: Run, now: int) -> Sentence | None:
    """What the end of a run meant for its task. None: the task's question says it."""
    outcome = run.outcome or Outcome(Ending.LOST)
    match state:
        case TaskState.DONE:
            left = ", with uncommitted work" if task.uncommitted else ""
            about = _with_figures(task, run)
            return Sentence(f"{task.id} is done{left}", about, after_done(run, task), "green")
        case TaskState.REVIEW:
            step = after_review(task.id)
            return Sentence(f"{task.id} waits for your review", task.title, step, "yellow")
        case TaskState.FAILED:
            about = f"{task.title}: {outcome.detail or task.tally.why}"
            return Sentence(f"{task.id} failed", about, after_failure(task.id), "red")
        case TaskState.CANCELLED:
            return Sentence(f"{task.id} was cancelled", task.title)
    return _goes_on(task, outcome, now)


def _goes_on(task: Task, outcome: Outcome, now: int) -> Sentence | None:
    if outcome.ending in {Ending.ASKED, Ending.OVER_BUDGET}:
        return None
    head = f"{task.id} {AGAIN.get(outcome.ending, 'is open again')}"
    pause = task.tally.not_before - now
    if pause >= SECOND:
        head += f" in {duration(pause // SECOND * SECOND)}"
    step = mend_of(task) if task.paused else ""
    return Sentence(head, outcome.detail or task.title, step, "yellow")


def _with_figures(task: Task, run: Run) -> str:
    took = duration(max(0, run.ended_at - (run.started_at or run.claimed_at)))
    usd = task.tally.spent.usd
    cost = f", {money(round(usd * 1_000_000))}" if usd else ""
    return f"{task.title}  ({took}{cost}{f', {NOTHING}' if changed_nothing(run) else ''})"


def after_done(run: Run, task: Task) -> str:
    """The commands that show the work and land it."""
    branch = run.workspace.branch if run.workspace else ""
    if task.uncommitted:
        return f"fleet diff {task.id}, fleet worktree commit {task.id} -m MESSAGE"
    if branch and task.tally.landing:
        return f"fleet land show {task.tally.landing}"
    if not branch or changed_nothing(run):
        return f"fleet show {run.task}"
    return f"fleet diff {run.task}, fleet land {run.task}"


def changed_nothing(run: Run) -> bool:
    """Whether the run had its own branch and left it as it was."""
    checkpoint = run.outcome.checkpoint if run.outcome else None
    branch = run.workspace.branch if run.workspace else ""
    return bool(branch and checkpoint) and not has_work(checkpoint, run)


def after_review(task: str) -> str:
    return f"fleet diff {task}, fleet close {task}"


def after_failure(task: str) -> str:
    return f"fleet logs {task}, fleet retry {task}"


def line_of(sentence: Sentence, at: int, *, colour: bool, room: int | None = None) -> str:
    """The time, what happened, and what to type: below it where a terminal has too little room.

    A terminal breaks a long line in mid-word: there the rest is set below its beginning, too.
    """
    head, about = _one_line(sentence.head), _one_line(sentence.about)
    if sentence.next:  # which some reasons end with themselves
        about = about.removesuffix(sentence.next).rstrip(": ")
    text = f": {about}" if about else ""
    line = paint(clock(at), "dim", colour=colour) + " " + paint(head, sentence.style, colour=colour)
    if room is not None and (parts := wrap(head + text, room - INDENT))[0].startswith(head):
        text = ("\n" + " " * INDENT).join(parts)[len(head) :]
    if not sentence.next:
        return line + text
    step = f"→ {_one_line(sentence.next)}"
    wide = INDENT + width(head + text) + 2 + width(step)
    gap = "\n" + " " * INDENT if room is not None and ("\n" in text or wide > room) else "  "
    return line + text + gap + paint(step, "bold", colour=colour)


def _one_line(text: str) -> str:
    return fit(" ".join(harmless(text).split()), LONGEST_TEXT)
