"""A message as commands and the server show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.data import dataclass
from fleet.domain.message import MessageKind, is_withdrawn

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
    """`status`: open or answered for a question, else queued, delivered, refused or withdrawn.

    `path` and `line`: of a remark on the task's work. It is open until the agent has been told.
    """

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
    path: str = ""
    line: int = 0


def message_row(message: Message) -> MessageRow:
    m = message
    about = m.data if m.kind is MessageKind.NOTE else {}  # the author of a post chooses its data
    status = "refused" if m.receipt.reason else STATUS.get((m.kind, m.state), "")
    status = "withdrawn" if is_withdrawn(m) else status
    return MessageRow(
        m.id, m.task, m.author, m.kind, m.text, m.state, m.at, m.details.options, m.reply_to,
        status, str(about.get("path", "")), int(about.get("line", 0)),
    )  # fmt: skip
