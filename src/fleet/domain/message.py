"""A message from one actor to an audience: about a task, to a team member, or in a chat."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from fleet.domain.data import FLAT, dataclass
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


WITHDREW = " withdrew it."  # after the actor's name, the reason of a withdrawn message


class MessageState(StrEnum):
    OPEN = "open"  # a question unanswered, words not delivered, mail not read, a hand-off pending
    CLOSED = "closed"  # answered, delivered, read or accepted; or a kind that needs none of these
    REFUSED = "refused"  # could not be delivered, or was rejected; `reason` says why
    ARCHIVED = "archived"  # taken off the board


@dataclass(frozen=True, slots=True)
class Details:
    """Fields that only one kind of message has."""

    subject: str = ""  # of mail
    options: tuple[str, ...] = ()  # of a question
    parked: bool = False  # a question whose asker ends its run and is resumed with the answer
    checkpoint: Checkpoint | None = None  # of a hand-off


@dataclass(frozen=True, slots=True)
class Receipt:
    """Who has read a message, and when and why it was closed."""

    readers: tuple[str, ...] = ()
    closed_at: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to the agents that work on `task`, to the members of `chat`, or to one member, `to`.

    A message about a task belongs to the task's team, and its `team` is empty. The copy that enters an
    agent's conversation is a message too, of kind `WORDS`, whose `data` names the source. In JSON, the
    fields of `details` and `receipt` are merged into the message's.
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
    data: dict[str, Any] = field(default_factory=dict)  # what programs read
    team: str = ""
    chat: str = ""
    details: Details = field(default=Details(), metadata=FLAT)
    receipt: Receipt = field(default=Receipt(), metadata=FLAT)

    @property
    def topic(self) -> str:
        """The chat, the task or the member it belongs to."""
        return self.chat or self.task or self.to


def answer(
    question: Message, text: str, *, by: str, at: int, new_id: str
) -> tuple[Message, Message]:
    """Return the closed question and its answer. Raise `Refused` when it already has an answer."""
    if question.kind is not MessageKind.QUESTION:
        raise Refused(f"{question.id} is not a question.")
    if question.state is not MessageState.OPEN:
        raise Refused(f"{question.id} already has an answer.", code="answered")
    closed = close(question, MessageState.CLOSED, at=at)
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
    """A number by which messages sort in the order they were sent; the lowest for an invalid id.

    Mail, chats and hand-offs were once entries and keep their ids (`e-5`), which people have seen.
    They are older than every `m-5`, so they sort first.
    """
    kind, _, number = message_id.strip().rpartition("-")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return -CARRIED - 1
    return int(number) - CARRIED if kind == "e" else int(number)


def read(message: Message, reader: str, *, at: int) -> Message:
    """Add this reader. Mail has one recipient, so reading closes it."""
    receipt = message.receipt
    if reader not in receipt.readers:
        receipt = replace(receipt, readers=(*receipt.readers, reader))
        message = replace(message, receipt=receipt)
    if message.kind is MessageKind.MAIL and message.state is MessageState.OPEN:
        message = close(message, MessageState.CLOSED, at=at)
    return message


def is_read(message: Message, reader: str) -> bool:
    """Whether the reader has read the message, or somebody settled it."""
    settles = message.kind in {MessageKind.MAIL, MessageKind.HANDOFF}
    return reader in message.receipt.readers or (settles and message.state is not MessageState.OPEN)


def delivered(message: Message, *, at: int) -> Message:
    return close(message, MessageState.CLOSED, at=at)


def refused(message: Message, reason: str, *, at: int) -> Message:
    return close(message, MessageState.REFUSED, at=at, reason=reason)


def withdrawn(message: Message, by: str, *, at: int) -> Message:
    return refused(message, f"{by}{WITHDREW}", at=at)


def is_withdrawn(message: Message) -> bool:
    return message.state is MessageState.REFUSED and message.receipt.reason.endswith(WITHDREW)


def close(message: Message, state: MessageState, *, at: int, reason: str = "") -> Message:
    """The message in this state, closed at this time."""
    receipt = replace(message.receipt, closed_at=at, reason=reason)
    return replace(message, state=state, receipt=receipt)
