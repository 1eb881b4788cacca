"""Send a task's work back to its agent, with the remarks that were made on it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.domain import task as rules
from fleet.domain.access import Permission
from fleet.domain.causes import let_run
from fleet.domain.data import dataclass
from fleet.domain.errors import Forbidden, Mismatch, Refused
from fleet.domain.event import Kind
from fleet.domain.landing.landing import LandingState
from fleet.domain.limits import TextLimit
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import cause_of, may_speak
from fleet.operations.shared.names import the_task
from fleet.operations.tasks.commit import decided, parent_changes
from fleet.operations.tasks.rows import TaskRow, rows
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Change

MAX_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class SendBack(Request[TaskRow]):
    """The task's agent goes on in its own conversation and worktree.

    It gets `text` and every remark of `message.comment` that names a file and was not sent yet.
    """

    task: str
    text: Annotated[str, TextLimit(MAX_CHARACTERS, what="text")] = ""


def send_back(context: Context, request: SendBack) -> TaskRow:
    task = the_task(context, request.task, Permission.MERGE)
    if not may_speak(context, task):
        raise Forbidden(
            f"The coder of {task.id} executes its messages as a program.",
            fix="Ask a coordinator to send it back.",
        )
    if task.tally.landed:
        raise Refused(
            f"{task.id} has landed already ({task.tally.landed[:12]}).",
            fix="Add a task for what is to be changed: fleet add",
            code="landed",
        )
    if task.state not in {*rules.ENDED, rules.TaskState.REVIEW}:
        raise Refused(
            f"{task.id} is {task.state}: only finished work can be sent back.",
            fix=f"Tell its agent: fleet send {task.id} TEXT",
            code="not_ended",
        )
    remarks = [m for m in context.store.messages(task.id) if is_remark(m)]
    text = _text(request.text.strip(), remarks)
    if not text:
        raise Mismatch(
            f"There is nothing to tell the agent of {task.id}.",
            fix=f"fleet send-back {task.id} TEXT, or first: fleet comment {task.id} TEXT --file FILE",
        )
    with decided(task):
        opened = let_run(rules.reopen(task), cause_of(context))
    now = context.store.now()
    words = Message(
        id=context.store.new_id("m"), version=0, task=task.id, author=context.actor.name,
        kind=MessageKind.WORDS, text=text, state=MessageState.OPEN, at=now,
    )  # fmt: skip
    closed = [replace(m, state=MessageState.CLOSED) for m in remarks]
    changes: list[Change] = [Put(opened), Put(words), *map(Put, closed)]
    changes += [*parent_changes(context.store, opened, now=now), *_landing(context, task)]
    context.commit(
        changes,
        context.event(Kind.TASK_REOPENED, task.id),
        context.event(Kind.MESSAGE_SENT, task.id, message=words.id),
    )
    return rows(context, [context.store.task(task.id)])[0]


def is_remark(message: Message) -> bool:
    """Whether the message is a remark on a file that the agent has not been sent yet."""
    about = bool(message.data.get("path"))
    return message.kind is MessageKind.NOTE and message.state is MessageState.OPEN and about


def _text(text: str, remarks: list[Message]) -> str:
    parts = [text] if text else []
    if remarks:
        lines = [f"- {where(m)}: {m.text}" for m in remarks]
        parts.append("Remarks on your work:\n" + "\n".join(lines))
    return "\n\n".join(parts)


def where(remark: Message) -> str:
    line = remark.data.get("line")
    return f"{remark.data['path']}:{line}" if line else str(remark.data["path"])


def _landing(context: Context, task: Task) -> list[Change]:
    """The change that makes the task's landing wait until its agent is done again."""
    if not task.tally.landing:
        return []
    landing = context.store.landing(task.tally.landing)
    why = f"{context.actor.name} sent it back."
    return [Put(replace(landing, state=LandingState.RETURNED, why=why))]


OPERATIONS = (
    Operation(
        "task.send_back", SendBack, Permission.MERGE, send_back,
        "Send a task's work back to its agent.",
    ),
)  # fmt: skip
