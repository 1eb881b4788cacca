"""What a coder is told when a run starts: the task, what happened before, and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.message import MessageKind, MessageState
from fleet.domain.run import Ending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.fleet import Agent, Fleet
    from fleet.domain.message import Message
    from fleet.domain.run import Choice, Run
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


def session_of(task: Task, last: Run | None, run: Run) -> str:
    """A conversation goes on where it is kept (that coder, that host), unless it was full."""
    if last is None or (last.host, last.choice.coder) != (run.host, run.choice.coder):
        return ""
    if last.outcome is not None and last.outcome.ending is Ending.CONTEXT_FULL:
        return ""
    return task.tally.checkpoint.session if task.tally.checkpoint else ""


def answers(said: Sequence[Message], claimed_at: int) -> list[Message]:
    """Those for a run that was claimed then; later ones are for the next run."""
    return [
        m
        for m in said
        if m.kind is MessageKind.ANSWER and m.state is MessageState.OPEN and m.at <= claimed_at
    ]


def compose(
    task: Task, last: Run | None, said: Sequence[Message], claimed_at: int, *, resuming: bool
) -> str:
    """`resuming`: the coder has the task in its conversation, and needs only what is new."""
    heard = answers(said, claimed_at)
    if resuming and len(heard) == 1:
        return heard[0].text
    questions = {m.id: m.text for m in said}
    news = [f"You asked: {questions[a.reply_to]}\nAnswer: {a.text}" for a in heard]
    if last is not None and not news:
        news = [_ended(last)]
    if resuming:
        return "\n\n".join(news)
    go_on = ["Go on from what is in the working directory."] if last is not None else []
    return "\n\n".join([task.prompt or task.title, *news, *go_on])


def _ended(last: Run) -> str:
    outcome = last.outcome
    if outcome is None or outcome.ending not in _BECAUSE:
        return "Please go on."
    why = f": {outcome.detail}" if outcome.detail else "."
    return f"{_BECAUSE[outcome.ending]}{why}\nPlease go on."


def options_of(agent: Agent, fleet: Fleet, choice: Choice) -> dict[str, object]:
    """What the agent's declaration says to its coder; the gateway, when a node of ours serves it."""
    options: dict[str, object] = {
        "command": agent.command,
        "extra_args": agent.extra_args,
        "permissions": agent.permissions,
        "tools": agent.tools,
    }
    model = fleet.model(choice.model) if choice.model else None
    if model is not None:
        gateway = fleet.gateway
        options["gateway"] = {
            "base_url": f"http://{gateway.host}:{gateway.port}",
            "key_env": gateway.master_key_env,
            "context": model.context,
        }
    return options
