"""A message as commands and the server show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from fleet.domain.message import Message


STATUS = {  # by kind and state: the word that people see
    ("question", "open"): "open",
    ("question", "closed"): "answered",
    ("answer", "open"): "queued",
    ("answer", "closed"): "delivered",
    ("words", "open"): "queued",
    ("words", "closed"): "delivered",
}


@dataclass(frozen=True, slots=True)
class MessageRow:
    """`status`: open or answered for a question, else queued, delivered or refused."""

    id: str
    task: str
    author: str
    kind: str
    text: str
    state: str
    at: Time
    options: tuple[str, ...]
    reply_to: str
    status: str


def message_row(message: Message) -> MessageRow:
    m = message
    status = "refused" if m.reason else STATUS.get((m.kind, m.state), "")
    return MessageRow(
        m.id, m.task, m.author, m.kind, m.text, m.state, m.at, m.options, m.reply_to, status
    )
