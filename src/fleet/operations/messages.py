"""Words about a task: notes, questions and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleet.domain import message as rules
from fleet.domain.access import Permission
from fleet.domain.errors import BadInput, Forbidden, Refused
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.task import ENDED, Task
from fleet.operations.catalogue import Operation, Request
from fleet.operations.message_rows import MessageRow, message_row
from fleet.operations.naming import (
    how_many,
    some_text,
    team_in_view,
    the_question,
    the_task,
)
from fleet.operations.writing import decided
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

MOST = 100_000
MOST_OPTIONS = 20


@dataclass(frozen=True, slots=True)
class Comment(Request[MessageRow]):
    task: str
    text: str


@dataclass(frozen=True, slots=True)
class Ask(Request[MessageRow]):
    """`park`: the asker ends its turn now, and is resumed with the answer."""

    text: str
    task: str = ""
    options: tuple[str, ...] = ()
    park: bool = False


@dataclass(frozen=True, slots=True)
class Answer(Request[MessageRow]):
    """`name` is the question's id, or its task's when that has one open question."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class TakeAnswer(Request[MessageRow | None]):
    """The answer, if it has come; whoever waited for it has now heard it."""

    question: str


@dataclass(frozen=True, slots=True)
class ListQuestions(Request[tuple[MessageRow, ...]]):
    limit: int = 100


def comment(context: Context, request: Comment) -> MessageRow:
    task = the_task(context, request.task, Permission.SEND)
    note = _message(context, task, MessageKind.NOTE, some_text("comment", request.text, most=MOST))
    context.commit([Put(note)], context.event("message.posted", task.id, message=note.id))
    return message_row(note)


def ask(context: Context, request: Ask) -> MessageRow:
    if not request.task and not context.actor.run:
        raise BadInput("The question is about no task.", fix="Name one: fleet ask --task t-1 …")
    task = the_task(context, request.task, Permission.ASK)
    text = some_text("question", request.text, most=MOST)
    options = _options(request.options)
    if task.state in ENDED:
        raise Refused(
            f"{task.id} is {task.state}: there is nothing to ask about.",
            fix=f"`fleet retry {task.id}` opens it again.",
        )
    if request.park and context.actor.task != task.id:
        raise BadInput("Only a run can park, on its own task.", fix="Leave out --park.")
    question = _message(
        context, task, MessageKind.QUESTION, text, options=options, parked=request.park
    )
    context.commit([Put(question)], context.event("message.asked", task.id, message=question.id))
    return message_row(question)


def _message(
    context: Context,
    task: Task,
    kind: MessageKind,
    text: str,
    *,
    options: tuple[str, ...] = (),
    parked: bool = False,
) -> Message:
    now, holds = context.store.now(), kind is MessageKind.QUESTION
    return Message(
        id=context.store.new_id("m"),
        version=0,
        task=task.id,
        author=context.actor.name,
        kind=kind,
        text=text,
        state=MessageState.OPEN if holds else MessageState.CLOSED,
        at=now,
        options=options,
        parked=parked,
        closed_at=0 if holds else now,
    )


def _options(given: tuple[str, ...]) -> tuple[str, ...]:
    if len(given) > MOST_OPTIONS:
        raise BadInput(f"{len(given)} options are too many.", fix=f"Give at most {MOST_OPTIONS}.")
    example = "Name an answer, or leave out --option."
    return tuple(dict.fromkeys(some_text("option", o, most=1000, example=example) for o in given))


def answer(context: Context, request: Answer) -> MessageRow:
    question = the_question(context, request.name, Permission.ANSWER)
    text = _chosen(question, some_text("answer", request.text, most=MOST))
    with decided(context.store.task(question.task)):
        closed, reply = rules.answer(
            question,
            text,
            by=context.actor.name,
            at=context.store.now(),
            new_id=context.store.new_id("m"),
        )
    event = context.event("message.answered", question.task, message=question.id)
    context.commit([Put(closed), Put(reply)], event)
    return message_row(reply)


def _chosen(question: Message, text: str) -> str:
    """An option by its number, as the question was shown; other words are an answer too."""
    numbers = {str(n): option for n, option in enumerate(question.options, 1)}
    return text if text in question.options else numbers.get(text, text)


def take_answer(context: Context, request: TakeAnswer) -> MessageRow | None:
    question = the_question(context, request.question, Permission.ASK)
    if question.author != context.actor.name:
        raise Forbidden(
            f"{question.id} was asked by {question.author}, who waits for the answer.",
            fix=f"`fleet show {question.task}` shows it.",
        )
    reply = _reply(context, question)
    if reply is None:
        return None
    if reply.state is MessageState.OPEN:
        reply = rules.delivered(reply, at=context.store.now())
        context.commit([Put(reply)], context.event("message.heard", reply.task, message=reply.id))
    return message_row(reply)


def _reply(context: Context, question: Message) -> Message | None:
    for message in context.store.messages(question.task):
        if message.kind is MessageKind.ANSWER and message.reply_to == question.id:
            return message
    task = context.store.task(question.task)
    if task.state in ENDED:
        raise Refused(
            f"{task.id} is {task.state}, and {question.id} has no answer.",
            fix=f"`fleet show {task.id}` tells its story.",
            code="unanswered",
        )
    return None


def questions(context: Context, request: ListQuestions) -> tuple[MessageRow, ...]:
    """Those that hold a task back: one that has ended waits for nothing."""
    limit, team = how_many(request.limit), team_in_view(context)
    asked = limit
    while True:
        found = context.store.open_messages(MessageKind.QUESTION, limit=asked)
        tasks = context.store.tasks_by_id(sorted({m.task for m in found}))
        mine = [
            m
            for m in found
            if team in {"", tasks[m.task].team} and tasks[m.task].state not in ENDED
        ]
        if len(mine) >= limit or len(found) < asked:
            return tuple(message_row(m) for m in mine[:limit])
        asked *= 4


_P = Permission
OPERATIONS = (
    Operation("message.comment", Comment, _P.SEND, comment, "Write a note.", idempotent=False),
    Operation("message.ask", Ask, _P.ASK, ask, "Ask a question.", idempotent=False),
    Operation("message.answer", Answer, _P.ANSWER, answer, "Answer a question."),
    Operation("message.take", TakeAnswer, _P.ASK, take_answer, "Hear the answer."),
    Operation("message.questions", ListQuestions, _P.READ, questions, "List open questions."),
)
