"""Messages as people see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.domain.message import Message


@dataclass(frozen=True, slots=True)
class MessageRow:
    id: str
    task: str
    author: str
    kind: str
    text: str
    state: str
    at: int
    options: tuple[str, ...]
    reply_to: str


def message_row(message: Message) -> MessageRow:
    m = message
    return MessageRow(m.id, m.task, m.author, m.kind, m.text, m.state, m.at, m.options, m.reply_to)
