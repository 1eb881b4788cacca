"""Questions and answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fleet.domain import message as rules
from fleet.domain.access import Permission, allow
from fleet.domain.errors import BadInput, NotFound, Refused
from fleet.domain.event import Event
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.task import ENDED
from fleet.operations.catalogue import Operation, Request
from fleet.operations.naming import clean_text, the_task
from fleet.operations.views import MessageRow, message_row
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

MOST = 100_000


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


def ask(context: Context, request: Ask) -> MessageRow:
    task = the_task(context, request.task, Permission.ASK)
    text = clean_text("question", request.text.strip(), most=MOST)
    if not text:
        raise BadInput("The question is empty.")
    if task.state in ENDED:
        raise Refused(f"{task.id} is {task.state}: there is nothing to ask about.")
    if request.park and not context.actor.run:
        raise BadInput("Only a run can park on a question.", fix="Leave out --park.")
    now = context.store.now()
    question = Message(
        id=context.store.new_id("m"),
        version=0,
        task=task.id,
        author=context.actor.name,
        kind=MessageKind.QUESTION,
        text=text,
        state=MessageState.OPEN,
        at=now,
        options=request.options,
        parked=request.park,
    )
    event = Event(
        "message.asked", task.id, context.actor.name, now, context.actor.run,
        {"message": question.id},
    )  # fmt: skip
    context.store.commit([Put(question)], [event])
    return message_row(question)


def answer(context: Context, request: Answer) -> MessageRow:
    question = _question(context, request.name)
    text = clean_text("answer", request.text, most=MOST)
    if not text.strip():
        raise BadInput("The answer is empty.")
    if question.options and text not in question.options:
        text = _option(question, text)
    now = context.store.now()
    closed, reply = rules.answer(
        question, text, by=context.actor.name, at=now, new_id=context.store.new_id("m")
    )
    event = Event(
        "message.answered", question.task, context.actor.name, now, data={"message": question.id}
    )
    context.store.commit([Put(closed), Put(reply)], [event])
    return message_row(reply)


def _option(question: Message, text: str) -> str:
    """By its number, as the question was shown; other words are an answer too."""
    if text.strip().isdigit() and 1 <= int(text) <= len(question.options):
        return question.options[int(text) - 1]
    return text


def _question(context: Context, name: str) -> Message:
    if name.startswith("m-"):
        try:
            question = context.store.message(name)
        except NotFound as error:
            raise NotFound(f"There is no question '{name}'.", fix="fleet questions") from error
        allow(context.actor, Permission.ANSWER, team=context.store.task(question.task).team)
        return question
    task = the_task(context, name, Permission.ANSWER)
    asked = [m for m in context.store.messages(task.id) if m.kind is MessageKind.QUESTION]
    still = [m for m in asked if m.state is MessageState.OPEN]
    if len(still) == 1:
        return still[0]
    if still:
        known = ", ".join(m.id for m in still)
        raise BadInput(f"{task.id} asks {len(still)} questions: {known}.", fix="Name one of them.")
    if asked:
        raise Refused(f"{task.id} has no open question any more.", code="answered")
    raise Refused(f"{task.id} has asked nothing.", fix="fleet questions lists what is open.")


def take_answer(context: Context, request: TakeAnswer) -> MessageRow | None:
    question = context.store.message(request.question)
    replies = [
        m
        for m in context.store.messages(question.task)
        if m.kind is MessageKind.ANSWER and m.reply_to == question.id
    ]
    if not replies:
        return None
    reply = replies[0]
    if reply.state is MessageState.OPEN:
        heard = rules.delivered(reply, at=context.store.now())
        context.store.commit([Put(replace(heard))], [])
    return message_row(reply)


def questions(context: Context, request: ListQuestions) -> tuple[MessageRow, ...]:
    found = context.store.open_messages(MessageKind.QUESTION, limit=request.limit)
    tasks = context.store.tasks_by_id(sorted({m.task for m in found}))
    return tuple(message_row(m) for m in found if tasks[m.task].team == context.actor.team)


_P = Permission
OPERATIONS = (
    Operation("message.ask", Ask, MessageRow, _P.ASK, ask, "Ask a question.", idempotent=False),
    Operation("message.answer", Answer, MessageRow, _P.ANSWER, answer, "Answer a question."),
    Operation("message.take", TakeAnswer, MessageRow, _P.ASK, take_answer, "Hear the answer."),
    Operation(
        "message.questions", ListQuestions, tuple, _P.READ, questions, "List open questions."
    ),
)
