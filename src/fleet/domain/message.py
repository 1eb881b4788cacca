"""A message from one actor to an audience: about a task, to a team member, or in a chat."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from fleet.domain.data import dataclass
from fleet.domain.errors import Refused
from fleet.domain.run import Checkpoint  # noqa: TC001  # a store reads the fields by their types

CARRIED = 1 << 62  # see `order_of`


class MessageKind(StrEnum):
    NOTE = "note"
    QUESTION = "question"  # holds its task until it is answered
    ANSWER = "answer"
    WORDS = "words"  # sent to an agent, to enter its conversation
    POST = "post"  # on the board of its task
    MAIL = "mail"  # to one member of a team
    CHAT = "chat"  # a line in a chat
    HANDOFF = "handoff"  # a checkpoint, for a member of a team to continue from


class MessageState(StrEnum):
    OPEN = "open"  # a question unanswered, words not delivered, mail not read, a hand-off pending
    CLOSED = "closed"  # answered, delivered, read, accepted; or needs none of these
    REFUSED = "refused"  # could not be delivered, or was rejected; `reason` says why
    ARCHIVED = "archived"  # taken off the board


@dataclass(frozen=True, slots=True)
class Message:
    """Its audience: the agents that work on `task`, the members in `chat`, or `to`, one member.

    `team` is empty for a message about a task: then the task's team counts. The copy that enters an
    agent's conversation is a message too: `WORDS`, whose `data` names its source.
    """

    id: str
    version: int
    task: str
    author: str
    kind: MessageKind
    text: str
    state: MessageState
    at: int
    to: str = ""  # an actor; empty: everyone in the audience
    reply_to: str = ""
    options: tuple[str, ...] = ()
    parked: bool = False  # a question whose asker ends its run and is resumed with the answer
    reason: str = ""
    closed_at: int = 0
    data: dict[str, Any] = field(default_factory=dict)  # what programs read
    readers: tuple[str, ...] = ()
    team: str = ""
    chat: str = ""
    subject: str = ""
    checkpoint: Checkpoint | None = None  # of a hand-off

    @property
    def topic(self) -> str:
        """The chat, the task or the member it belongs to."""
        return self.chat or self.task or self.to


def answer(
    question: Message, text: str, *, by: str, at: int, new_id: str
) -> tuple[Message, Message]:
    """The closed question and its answer. The first answer wins."""
    if question.kind is not MessageKind.QUESTION:
        raise Refused(f"{question.id} is not a question.")
    if question.state is not MessageState.OPEN:
        raise Refused(f"{question.id} already has an answer.", code="answered")
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


def order_of(message_id: str) -> int:
    """Its place among all messages, by the number in its id; first of all if it is not an id.

    Mail, chats and hand-offs were once entries and keep their ids (`e-5`), which people have seen.
    They are older than every `m-5`, so they come first.
    """
    kind, _, number = message_id.strip().rpartition("-")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return -CARRIED - 1
    return int(number) - CARRIED if kind == "e" else int(number)


def read(message: Message, reader: str, *, at: int) -> Message:
    """Add this reader. Mail has one recipient, so reading closes it."""
    if reader not in message.readers:
        message = replace(message, readers=(*message.readers, reader))
    if message.kind is MessageKind.MAIL and message.state is MessageState.OPEN:
        message = replace(message, state=MessageState.CLOSED, closed_at=at)
    return message


def is_read(message: Message, reader: str) -> bool:
    """Whether the reader need not be told of it."""
    settles = message.kind in {MessageKind.MAIL, MessageKind.HANDOFF}
    return reader in message.readers or (settles and message.state is not MessageState.OPEN)


def delivered(message: Message, *, at: int) -> Message:
    return replace(message, state=MessageState.CLOSED, closed_at=at)


def refused(message: Message, reason: str, *, at: int) -> Message:
    return replace(message, state=MessageState.REFUSED, reason=reason, closed_at=at)
