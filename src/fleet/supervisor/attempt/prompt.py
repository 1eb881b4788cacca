"""The prompt of a run: the task, how the last run ended, and new messages and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.addressing import is_aside
from fleet.domain.event import Kind
from fleet.domain.message import MessageKind, MessageState
from fleet.domain.run import Ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.domain.event import Event
    from fleet.domain.fleet import Agent
    from fleet.domain.message import Message
    from fleet.domain.run import Run
    from fleet.domain.task import Task

_BECAUSE = {
    Ending.FAILED: "The last run failed",
    Ending.TIMED_OUT: "The last run took too long",
    Ending.STALLED: "The last run went silent",
    Ending.OUT_OF_MEMORY: "The last run used more memory than it may, and was ended",
    Ending.RATE_LIMITED: "The last run hit a rate limit",
    Ending.CONTEXT_FULL: "The last run filled its context",
    Ending.LOST: "The last run was cut off",
    Ending.YIELDED: "The last run was interrupted",
    Ending.STOPPED: "The last run was stopped by a person",
    Ending.OVER_BUDGET: "The last run spent its budget, and was given more",
}
PROTOCOL = """\
You work on one task of a queue, without a person watching. Nobody sees what you print until you
have ended, and a later run may have to continue where you stop: what is worth keeping must be in
files.

Your task's id is in $FLEET_TASK_ID. Its notes are in the directory $FLEET_ARTIFACT_DIR:
- PLAN_AND_STATUS.md: the task in your own words, your plan, and how far it is. Read it first. Keep
  it true: bring it up to date after every step and before you end.
- KNOWLEDGE.md: what a later run must know and cannot see in the code: where things are, what must
  stay true, what surprised you. Add to it; do not rewrite what others wrote.
- Q&A.md: questions and their answers. Read it before you ask.
Other files that you make for the task, and that are not part of the work itself, go there too.
$FLEET_TASK_DIR/events.jsonl says what earlier runs did and why they ended.

When you cannot go on without a person, ask, and do not guess:
    fleet ask "QUESTION" --option "ONE ANSWER" --option "ANOTHER" --park
then end your turn. You will be resumed with the answer. (Or add a `## Q:` block to Q&A.md and run
`bd update $FLEET_TASK_ID --status blocked --notes "QUESTION: summary"`; that does the same.)

When the task is done, and only then: bring PLAN_AND_STATUS.md up to date, commit your work if you
are in a git worktree, run
    fleet close $FLEET_TASK_ID --reason "WHAT YOU DID, IN A SENTENCE OR TWO"
and end your turn. If you end without that, what you said last is taken as the result.
"""


def session_of(task: Task, last: Run | None, run: Run) -> str:
    """The session to resume: on the same host and with the same coder, unless it was full."""
    if last is None and task.tally.checkpoint and task.tally.checkpoint.fork:
        return task.tally.checkpoint.session
    if last is None or (last.host, last.choice.coder) != (run.host, run.choice.coder):
        return ""
    if last.outcome is not None and last.outcome.ending is Ending.CONTEXT_FULL:
        return ""
    return task.tally.checkpoint.session if task.tally.checkpoint else ""


def news_for(messages: Sequence[Message], claimed_at: int) -> list[Message]:
    """Unheard answers and messages from before the claim; the run hears later ones as it works."""
    return [
        m
        for m in messages
        if m.kind in {MessageKind.ANSWER, MessageKind.WORDS}
        and m.state is MessageState.OPEN
        and m.at <= claimed_at
    ]


def has_asked(messages: Sequence[Message], run: Run) -> bool:
    """Whether the run parked on a question, or ended while its question is still unanswered.

    A parked question counts even when its answer came before the run ended.
    """
    return any(
        m.kind is MessageKind.QUESTION
        and m.author == run.id
        and (m.details.parked or (m.state is MessageState.OPEN and not run.closed))
        for m in messages
    )


def instructions(agent: Agent) -> str:
    """The agent's own instructions, and the protocol of all agents."""
    return "\n\n".join(part for part in (agent.prompt, PROTOCOL) if part)


def is_reworded(events: Iterable[Event], last: Run) -> bool:
    """Whether the title or prompt was edited after the last run began, and not by that run."""
    later = (e for e in events if e.at > last.claimed_at and e.run != last.id)
    edits = (e.data["what"].split(", ") for e in later if e.type == Kind.TASK_EDITED)
    return any("title" in what or "prompt" in what for what in edits)


def compose(
    task: Task,
    last: Run | None,
    messages: Sequence[Message],
    claimed_at: int,
    *,
    resuming: bool,
    reworded: bool = False,
) -> str:
    """Return the prompt: the task, how its last run ended, and the messages it has not heard.

    `resuming`: the coder's session contains the task, so say only what is new. `reworded`: the title
    or prompt was edited since the last run.
    """
    unheard = news_for(messages, claimed_at)
    if resuming and len(unheard) == 1 and not reworded:
        return unheard[0].text
    questions = {m.id: m.text for m in messages if m.author != SUPERVISOR}
    news = [_as_text(message, questions.get(message.reply_to, "")) for message in unheard]
    if last is not None and not news:
        news = [_ended(last)]
    if resuming:
        words = [f"Your task was changed. It is now:\n\n{task.prompt or task.title}"]
        return "\n\n".join([*(words if reworded else ()), *news])
    go_on = ["Continue from what is in the working directory."] if last is not None else []
    return "\n\n".join([task.prompt or task.title, *news, *go_on])


def _as_text(message: Message, question: str) -> str:
    if question:
        return f"You asked: {question}\nAnswer: {message.text}"
    return message.text if is_aside(message) else f"A message for you: {message.text}"


def _ended(last: Run) -> str:
    outcome = last.outcome
    if outcome is None or outcome.ending not in _BECAUSE:
        return "Please continue."
    why = f": {outcome.detail}" if outcome.detail else "."
    return f"{_BECAUSE[outcome.ending]}{why}\nPlease continue."
