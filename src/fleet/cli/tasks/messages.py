"""Questions: ask, answer, questions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.completion import complete_questions, complete_tasks
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.render import Column, Result, Table, Text, say
from fleet.domain.errors import BadInput, FleetError, Refused, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.client import Client
    from fleet.operations.messages.rows import MessageRow


@command(config=True)
@click.argument("question")
@click.option("--task", default="", help="The task it is about. Inside a run: the run's own task.")
@click.option("--option", "options", multiple=True, help="A likely answer. May be repeated.")
@click.option(
    "--park",
    is_flag=True,
    help="Do not wait: end this run; the next one continues with the answer.",
)
@click.option("--timeout", type=click.FloatRange(min=0), help="Seconds to wait for the answer.")
def ask(
    question: str,
    task: str,
    options: tuple[str, ...],
    park: bool,  # noqa: FBT001  # click passes by name
    timeout: float | None,
    config: Path | None,
) -> Result:
    """Ask a question; the task waits for the answer."""
    from fleet.operations.messages.ask_answer_send import Ask

    client = connect(config=config)
    row = client.call(Ask(question, task, options, park))
    if park:
        words = f"Asked ({row.id}). End your turn now: you will be resumed with the answer."
        return Result("question", row, Text(words))
    return _wait_for_answer(client, row, timeout)


def _wait_for_answer(client: Client, question: MessageRow, timeout: float | None) -> Result:
    from fleet.operations.messages.ask_answer_send import TakeAnswer

    if not wants_json() and timeout != 0:
        say(
            f"{question.task} waits until {question.id} is answered: fleet answer {question.id} TEXT"
        )
    until = time.monotonic() + timeout if timeout is not None else None
    while True:
        answer = client.call(TakeAnswer(question.id))
        if answer is not None:
            return Result("answer", answer, Text(answer.text))
        if until is not None and time.monotonic() >= until:
            raise Unavailable(
                f"{question.id} has no answer yet.",
                fix=f"It stays open: fleet answer {question.id} TEXT",
                code="unanswered",
            )
        left = until - time.monotonic() if until is not None else 0.5
        client.wait(max(0.0, min(0.5, left)))


@command(config=True)
@click.argument("task", shell_complete=complete_tasks)
@click.argument("text", nargs=-1)
@click.option("--file", "file", metavar="FILE", help="Read the text from this file; `-` is stdin.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=10.0,
    help="Seconds to wait for the agent to read it. After that it stays queued.",
)
def send(
    task: str, text: tuple[str, ...], file: str | None, wait: float, config: Path | None
) -> Result:
    """Send a message to the agent of TASK while it works.

    The agent reads it between two steps of its turn if its coder supports that; otherwise the next
    run does, which starts when this one has ended.
    """
    return tell(connect(config=config), task, text, file, wait=wait)


@command(config=True)
@click.argument("message")
def unsend(message: str, config: Path | None) -> Result:
    """Withdraw MESSAGE, if no agent has read it yet.

    `fleet show TASK` lists the messages of a task. Text that is already in the agent's prompt
    box stays there.
    """
    from fleet.operations.messages.ask_answer_send import Unsend

    row = connect(config=config).call(Unsend(message))
    return Result("message", row, Text(f"Withdrew {row.id} from {row.task}."))


def tell(
    client: Client, name: str, text: tuple[str, ...], file: str | None, *, wait: float
) -> Result:
    """Send a message, wait a while, and report whether it was heard, is queued or was refused."""
    from fleet.cli.tasks.add import read_text
    from fleet.operations.messages.ask_answer_send import ReadMessage, SendWords

    if (file is None) == (not text):
        raise BadInput(
            "Give the message as text or with --file, but not both.",
            fix='fleet send t-1 "Add tests too"',
        )
    words = read_text(file, "message") if file is not None else " ".join(text)
    sent = client.call(SendWords(name, words))
    client.deliver(sent.id, patience=wait)
    sent = client.call(ReadMessage(sent.id))
    if sent.status == "refused":
        raise Refused(f"{sent.task} ended before it read {sent.id}.", fix=f"fleet show {sent.task}")
    return Result("message", sent, Text(_delivery(client, sent)))


def _asks(client: Client, task: str) -> str:
    """What the agent asks permission for, and the commands that answer."""
    from fleet.cli.agents.calls import answers
    from fleet.operations.tasks.observe import LookAtAgents

    try:
        (seen,) = client.call(LookAtAgents((task,)))
    except (FleetError, ValueError):
        return ""
    return f"{seen.asks}  → {answers(task)}" if seen.asks else ""


def _delivery(client: Client, sent: MessageRow) -> str:
    if sent.status == "delivered":
        return f"{sent.task} has read the message ({sent.id})."
    if client.state(sent.task) == "running":
        if asks := _asks(client, sent.task):
            return f"Queued ({sent.id}): {sent.task} asks for permission first: {asks}"
        return f"Queued ({sent.id}): {sent.task} has not read the message yet; this run or the next one will."
    return f"Queued ({sent.id}): {sent.task} is not running; its next run gets the message."


@command(config=True)
@click.argument("task", shell_complete=complete_questions)
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--as-text", is_flag=True, help="Take a number as the answer itself, not as an option."
)
def answer(
    task: str,
    text: tuple[str, ...],
    as_text: bool,  # noqa: FBT001  # click passes by name
    config: Path | None,
) -> Result:
    """Answer the question of TASK, or the question with that id.

    TEXT may be the number of one of the question's options.
    """
    from fleet.operations.messages.ask_answer_send import Answer

    client = connect(config=config)
    given = client.call(Answer(task, " ".join(text), as_text))
    excerpt = " ".join(given.text.split())
    words = f"Answered {given.reply_to} of {given.task}: {excerpt[:60]}{'…' * (len(excerpt) > 60)}"
    return Result("answer", given, Text(words))


@command(config=True)
@click.option(
    "-n", "--limit", type=click.IntRange(1, 10_000), default=100, help="Show at most this many."
)
def questions(limit: int, config: Path | None) -> Result:
    """List the open questions, oldest first."""
    from fleet.cli.tasks.views import choices
    from fleet.cli.terminal.human import ago
    from fleet.operations.messages.ask_answer_send import ListQuestions

    client = connect(config=config)
    messages = client.call(ListQuestions(limit))
    now = client.now()
    columns = (
        "question",
        "task",
        "asked",
        Column("text", flexible=True, least=20),
        Column("options", flexible=True, least=16),
    )
    rows = [
        (m.id, m.task, ago(m.at, now), " ".join(m.text.split()), choices(m) or None)
        for m in messages
    ]
    notes = ("Answer one: fleet answer QUESTION TEXT",) if messages else ()
    return Result("questions", messages, Table(columns, rows, empty="No open questions."), notes)
