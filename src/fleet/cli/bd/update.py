"""`bd update`: what a change of an issue's fields means for a task, its run and its question."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.cli.tasks.reopen import RUNNING, is_own, qa_file, read_text, reopen_task
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput
from fleet.operations.compat.issues import ListIssues
from fleet.operations.compat.states import bd_word
from fleet.operations.messages.ask_answer_send import Ask, Comment
from fleet.operations.messages.qa_file import whole_question, with_question
from fleet.operations.tasks.assign import AssignTask
from fleet.operations.tasks.change import CloseTask, PauseTask
from fleet.operations.tasks.edit import EditTask

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.client import Client
    from fleet.operations.compat.issues import Issue

QUESTION = re.compile(r"^\s*QUESTION:\s*", re.IGNORECASE)


class IssueChanges(NamedTuple):
    """The requested changes; None leaves a field as it is, and an empty assignee removes it."""

    status: str | None = None
    assignee: str | None = None
    notes: str | None = None
    title: str | None = None
    description: str | None = None
    priority: int | None = None
    claim: bool = False


def the_issue(client: Client, name: str) -> Issue:
    return client.call(ListIssues(tasks=(name,)))[0]


def update_issue(client: Client, name: str, wish: IssueChanges) -> list[str]:
    """Make the changes; return a sentence for each."""
    if all(part is None or part is False for part in wish):  # 0 is a priority
        raise BadInput("No change to make was given.", fix="See `fleet bd update --help`.")
    issue = the_issue(client, name)
    word = bd_word(wish.status) if wish.status is not None else ""
    lines: list[str] = []
    if wish.claim or word == "in_progress":
        lines.append(_claim(client, issue, wish.assignee or ""))
        wish = wish._replace(assignee=None)
    elif word == "blocked":
        lines.append(_block(client, issue, wish.notes or ""))
        wish = wish._replace(notes=None)
    elif word == "closed":
        lines.append(close_issue(client, issue.id, wish.notes or "Closed."))
        wish = wish._replace(notes=None)
    elif word == "deferred":
        client.call(PauseTask(issue.id))
        lines.append(f"{issue.id} does not start until you resume it.")
    elif word == "open":
        lines += reopen_task(client, issue.id, unassign=wish.assignee is None)
    lines += _fields(client, issue, wish)
    return lines or [f"{issue.id} is {issue.bd}."]


def _fields(client: Client, issue: Issue, wish: IssueChanges) -> list[str]:
    lines = []
    if wish.assignee is not None and wish.assignee != issue.assignee and not _is_runs(issue, wish):
        client.call(AssignTask(issue.id, wish.assignee))
        whose = f"is {wish.assignee}'s" if wish.assignee else "is unassigned, so it may start"
        lines.append(f"{issue.id} {whose}.")
    if any(part is not None for part in (wish.title, wish.description, wish.priority)):
        client.call(EditTask(issue.id, wish.title, wish.description, wish.priority))
        lines.append(f"{issue.id} is changed.")
    if wish.notes:
        note = client.call(Comment(issue.id, wish.notes))
        lines.append(f"Added the note {note.id} to {issue.id}.")
    return lines


def _is_runs(issue: Issue, wish: IssueChanges) -> bool:
    """Whether the change would only unassign a task that a run works on, which changes nothing."""
    return issue.status in RUNNING and not wish.assignee


def _claim(client: Client, issue: Issue, assignee: str) -> str:
    row = client.call(AssignTask(issue.id, assignee, claim=True))
    if is_own(client, issue.id):
        return f"{row.id} is yours already."
    return f"{row.id} is {assignee or client.actor.name}'s to do by hand."


def close_issue(client: Client, name: str, why: str) -> str:
    row = client.call(CloseTask(name, why))
    if row.state == "running":
        return f"Closed {row.id}: {why}  [it is settled when this run ends]"
    return f"Closed {row.id}: {why}"


def _block(client: Client, issue: Issue, notes: str) -> str:
    """Block the task: its own agent asks a parked question; a person asks one, or pauses the task."""
    own, asking = is_own(client, issue.id), QUESTION.match(notes)
    summary = QUESTION.sub("", notes).strip()
    if not own and not asking:
        return _pause(client, issue, summary)
    file = qa_file(client, issue.id, own=own)
    before = read_text(file)
    text = whole_question(before, summary) if own else summary
    if not text:
        raise BadInput(
            "The question is missing.", fix='Write it: --notes "QUESTION: Which database?"'
        )
    if issue.question and " ".join(issue.question.split()) == " ".join(text.split()):
        return f"{issue.id} asks that already."
    question = client.call(Ask(text, issue.id, park=own))
    _append(file, with_question(before, text, question.id), before)
    if own:
        return f"Asked ({question.id}). End your turn now: you will be resumed with the answer."
    return f"{issue.id} asks ({question.id}): fleet answer {question.id} TEXT"


def _pause(client: Client, issue: Issue, why: str) -> str:
    client.call(PauseTask(issue.id))
    if why:
        client.call(Comment(issue.id, why))
    return f"{issue.id} does not start until you resume it."


def _append(file: Path, wanted: str, before: str) -> None:
    """Append to the file, so that text that a person writes at the same time is not lost."""
    if wanted == before:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(wanted[len(before) :])
