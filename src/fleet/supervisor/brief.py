"""What a coder is told when a run starts: the task, what happened before, and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.run import Ending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.message import Message
    from fleet.domain.run import Run
    from fleet.domain.task import Task

_BECAUSE = {
    Ending.FAILED: "The last run failed",
    Ending.TIMED_OUT: "The last run took too long",
    Ending.STALLED: "The last run went silent",
    Ending.RATE_LIMITED: "The last run met a rate limit",
    Ending.CONTEXT_FULL: "The last run filled its context",
    Ending.LOST: "The last run was cut off",
    Ending.STOPPED: "The last run was stopped by a person",
}


def compose(
    task: Task, last: Run | None, questions: dict[str, Message], answers: Sequence[Message], *,
    resuming: bool,
) -> str:  # fmt: skip
    """`resuming`: the coder has the task in its conversation, and needs only what is new."""
    if last is None:
        return _task(task)
    news = _answers(questions, answers) or _ended(last)
    if resuming:
        return news
    return f"{_task(task)}\n\n{news}\nGo on from what is in the working directory."


def _task(task: Task) -> str:
    return task.prompt or task.title


def _answers(questions: dict[str, Message], answers: Sequence[Message]) -> str:
    if len(answers) == 1:
        return answers[0].text
    parts = [f"You asked: {questions[a.reply_to].text}\nAnswer: {a.text}" for a in answers]
    return "\n\n".join(parts)


def _ended(last: Run) -> str:
    outcome = last.outcome
    if outcome is None or outcome.ending not in _BECAUSE:
        return "Please go on."
    why = f": {outcome.detail}" if outcome.detail else "."
    return f"{_BECAUSE[outcome.ending]}{why}\nPlease go on."
