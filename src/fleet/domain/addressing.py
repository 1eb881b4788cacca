"""What a team says to an agent at work: who is meant, and how it is put into the conversation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.message import Message
    from fleet.domain.task import Task

MAIL, POST = "mail", "post"
MOST = 20_000  # characters that enter a conversation unasked; the rest is where it was said
MOST_MEMORY = 500  # characters of each, as an agent begins
SOLE = ("text", "directive", "message")  # a payload with one of these alone is those words


def names_of(task: Task) -> tuple[str, ...]:
    """By which its agent is written to: the task, the branch it asked for, any of its runs."""
    runs = (f"{task.id}.{number}" for number in range(1, task.tally.runs + 1))
    return tuple(dict.fromkeys(name for name in (task.id, task.spec.branch, *runs) if name))


def is_meant(task: Task, name: str) -> bool:
    return bool(name) and name in names_of(task)


def hears_post(task: Task, board: str, *, to: str = "", by: str = "") -> bool:
    """Whether the agent of this task hears a post on that board. `by`: the author's own task.

    A board is read by who works on its task, or on a part of it. Whoever is named hears it anyway.
    """
    if task.id == by:
        return False
    if to:
        return is_meant(task, to)
    return board in {task.id, task.parent}


def as_mail(sender: str, subject: str, text: str, *, to_all: bool = False) -> str:
    what = f"To the whole team, from {sender}" if to_all else f"Mail from {sender}"
    return _put(f"{what}: {subject}" if subject else what, text)


def as_post(author: str, board: str, data: Mapping[str, Any], *, to: str = "") -> str:
    priority = data["priority"]
    more = "" if priority == "normal" else f", {priority}"
    whom = " to you" if to else ""
    return _put(f"{data['type']}{whom} from {author}, board of {board}{more}", _told(data))


def _told(data: Mapping[str, Any]) -> str:
    payload = data["payload"]
    if len(payload) == 1:
        ((key, value),) = payload.items()
        if key in SOLE and isinstance(value, str):
            return value
    return json.dumps(payload, ensure_ascii=False)


def _put(head: str, text: str) -> str:
    """It begins with a bracket, so that no program takes it for a command of its own."""
    cut = "" if len(text) <= MOST else "\n… (there is more of it where it was said)"
    return f"[{' '.join(head.split())}]\n{text[:MOST]}{cut}"


def as_known(
    sender: str, checkpoint: Mapping[str, Any], memories: Sequence[tuple[str, str]]
) -> str:
    """A checkpoint and memories, for who begins without having heard of them."""
    parts = []
    if checkpoint:
        said = {key: value for key, value in checkpoint.items() if value}
        parts.append(_put(f"Checkpoint from {sender}", json.dumps(said, ensure_ascii=False)))
    if memories:
        lines = (f"{key}: {' '.join(value.split())[:MOST_MEMORY]}" for key, value in memories)
        parts.append(_put("What you remember", "\n".join(lines)))
    return "\n\n".join(parts)


def source_of(message: Message) -> tuple[str, str]:
    """What the words tell of, kind and id; empty when they were sent to the agent and it alone.

    Those hold no task open: what was not heard is still unread where it was said.
    """
    return str(message.data.get("source", "")), str(message.data.get("id", ""))


def is_aside(message: Message) -> bool:
    return bool(source_of(message)[0])
