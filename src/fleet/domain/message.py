"""Words from one actor about a task: notes, questions, answers, and what is sent to a run."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from fleet.domain.data import dataclass
from fleet.domain.errors import Refused


class MessageKind(StrEnum):
    NOTE = "note"
    QUESTION = "question"  # holds its task until it is answered
    ANSWER = "answer"
    WORDS = "words"  # sent to an agent, to enter its conversation
    POST = "post"  # on the board of its task


class MessageState(StrEnum):
    OPEN = "open"  # a question unanswered, words or an answer not delivered yet
    CLOSED = "closed"  # answered, delivered, or never in need of either
    REFUSED = "refused"  # could not be delivered; `reason` says why
    ARCHIVED = "archived"  # taken off the board


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    version: int
    task: str
    author: str
    kind: MessageKind
    text: str
    state: MessageState
    at: int
    to: str = ""  # an actor; empty: everyone on the task
    reply_to: str = ""
    options: tuple[str, ...] = ()
    parked: bool = False  # a question whose asker ends its run and is resumed with the answer
    reason: str = ""
    closed_at: int = 0
    data: dict[str, Any] = field(default_factory=dict)  # of a post: what programs read
    readers: tuple[str, ...] = ()


def answer(
    question: Message, text: str, *, by: str, at: int, new_id: str
) -> tuple[Message, Message]:
    """The question as answered, and the answer. The first answer wins."""
    if question.kind is not MessageKind.QUESTION:
        raise Refused(f"{question.id} is not a question.")
    if question.state is not MessageState.OPEN:
        raise Refused(f"{question.id} has been answered already.", code="answered")
    closed = replace(question, state=MessageState.CLOSED, closed_at=at)
    reply = Message(
        id=new_id,
        version=0,
        task=question.task,
        author=by,
        kind=MessageKind.ANSWER,
        text=text,
        state=MessageState.OPEN,
        at=at,
        to=question.author,
        reply_to=question.id,
    )
    return closed, reply


def delivered(message: Message, *, at: int) -> Message:
    return replace(message, state=MessageState.CLOSED, closed_at=at)


def refused(message: Message, reason: str, *, at: int) -> Message:
    return replace(message, state=MessageState.REFUSED, reason=reason, closed_at=at)
