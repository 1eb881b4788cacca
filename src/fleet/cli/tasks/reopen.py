"""Letting a task go on: its answer is taken from Q&A.md, or whatever holds it is lifted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import Refused
from fleet.operations.messages.ask_answer_send import Answer
from fleet.operations.messages.qa_file import new_answers
from fleet.operations.tasks.assign import AssignTask
from fleet.operations.tasks.change import ResumeTask, RetryTask
from fleet.operations.tasks.show import ShowTask

if TYPE_CHECKING:
    from fleet.client import Client
    from fleet.operations.tasks.show import TaskDetail

RUNNING = ("starting", "running", "stopping")
ENDED = ("done", "failed", "cancelled", "review")


def reopen_task(client: Client, name: str, *, unassign: bool = True) -> list[str]:
    """Let the task go on; return a sentence for each thing that was done.

    `unassign`: also release a task that a member does by hand.
    """
    detail, lines = client.call(ShowTask(name)), []
    answered = _answer(client, detail)
    if answered:
        lines.append(answered)
        detail = client.call(ShowTask(name))  # what else holds it shows now
    task, status = detail.task.id, detail.task.status
    if not answered and status in RUNNING:
        run = detail.task.run.id if detail.task.run else ""
        return [f"{task} is running ({run}), so nothing was changed."]
    if status in ENDED:
        client.call(RetryTask(task))
        lines.append(f"{task} is open again.")
    elif status in {"paused", "postponed", "held"}:
        client.call(ResumeTask(task))
        lines.append(f"{task} may start.")
    elif status == "assigned" and unassign:
        client.call(AssignTask(task))
        lines.append(f"{task} is unassigned, so it may start.")
    return lines


def _answer(client: Client, detail: TaskDetail) -> str:
    """Give the answer that a person wrote into Q&A.md; raise when a task that asks has none."""
    task, status = detail.task.id, detail.task.status
    questions = [m for m in detail.messages if m.kind == "question" and m.state == "open"]
    unanswered = [(m.id, m.text) for m in questions]
    if not unanswered or status in {"done", "failed", "cancelled"} or is_own(client, task):
        return ""
    known = {m.text for m in detail.messages if m.kind == "answer"}
    file = qa_file(client, task, own=False)
    answers = new_answers(read_text(file), unanswered, known)
    if len(answers) < len(unanswered) and status not in RUNNING:
        open_one = next(mark for mark, _ in unanswered if mark not in answers)
        raise Refused(
            f"{task} asks ({open_one}), and {file} has no answer to it.",
            fix=f"fleet answer {open_one} TEXT, or write it there, below the question, "
            "under `## A:`.",
            code="unanswered",
        )
    for mark, text in answers.items():
        client.call(Answer(mark, text))
    return f"{task} got your answer." if answers else ""


def is_own(client: Client, task: str) -> bool:
    """Whether the caller is the run that works on the task."""
    return bool(client.actor.run) and client.actor.task == task


def qa_file(client: Client, task: str, *, own: bool) -> Path:
    named = os.environ.get("FLEET_ARTIFACT_DIR", "") if own else ""
    folder = Path(named) if named else client.task_dir(task) / "artifacts"
    return folder / "Q&A.md"


def read_text(file: Path) -> str:
    try:
        if not file.is_file():  # nothing, or what would make us wait for ever
            return ""
        return file.read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise Refused(
            f"{file} cannot be read: {error.strerror}.", fix="Fix that first, then try again."
        ) from error
