"""Messages of a team to agents at work: which agent hears one, and the text that it hears."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fleet.domain.message import MessageKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.message import Message
    from fleet.domain.run import Summary
    from fleet.domain.task import Task

TO_ALL = "to_all"  # in the data of mail that was sent to the whole team
MAX_UNASKED_CHARACTERS = (
    20_000  # of a message that enters a conversation unasked; the rest stays where it was posted
)
MOST_MEMORY = 500  # characters of each memory that a new run is told
SOLE = ("text", "directive", "message")  # a payload with one of these alone is shown as text


def names_of(task: Task) -> tuple[str, ...]:
    """The names that reach its agent: the task, the branch it asked for, any of its runs."""
    runs = (f"{task.id}.{number}" for number in range(1, task.tally.runs + 1))
    return tuple(dict.fromkeys(name for name in (task.id, task.spec.branch, *runs) if name))


def is_meant(task: Task, name: str) -> bool:
    return bool(name) and name in names_of(task)


def hears_post(task: Task, board: str, *, to: str = "", by: str = "") -> bool:
    """Whether the agent of this task hears a post on that board. `by`: the author's own task.

    The agents of the board's task and of its children hear it; a named agent hears it anyway.
    """
    if task.id == by:
        return False
    if to:
        return is_meant(task, to)
    return board in {task.id, task.parent}


def as_words(message: Message) -> str:
    """The text that enters the conversation of an agent in the audience."""
    author, data = message.author, message.data
    match message.kind:
        case MessageKind.POST:
            more = "" if data["priority"] == "normal" else f", {data['priority']}"
            whom = " to you" if message.to else ""
            head = f"{data['type']}{whom} from {author}, board of {message.task}{more}"
            return _with_head(head, _payload(data))
        case MessageKind.CHAT:
            return _with_head(f"Chat {message.chat}, from {author}", message.text)
        case MessageKind.HANDOFF if message.checkpoint and message.checkpoint.outline:
            return as_checkpoint(author, message.checkpoint.outline)
    head = f"To the whole team, from {author}" if TO_ALL in data else f"Mail from {author}"
    return _with_head(f"{head}: {message.subject}" if message.subject else head, message.text)


def as_checkpoint(author: str, outline: Summary) -> str:
    known = {key: value for key, value in asdict(outline).items() if value}
    return _with_head(f"Checkpoint from {author}", json.dumps(known, ensure_ascii=False))


def _payload(data: Mapping[str, Any]) -> str:
    payload = data["payload"]
    if len(payload) == 1:
        ((key, value),) = payload.items()
        if key in SOLE and isinstance(value, str):
            return value
    return json.dumps(payload, ensure_ascii=False)


def _with_head(head: str, text: str) -> str:
    """Start with a bracket, so that no program takes the text for one of its own commands."""
    cut = (
        "" if len(text) <= MAX_UNASKED_CHARACTERS else "\n… (there is more of it where it was said)"
    )
    return f"[{' '.join(head.split())}]\n{text[:MAX_UNASKED_CHARACTERS]}{cut}"


def as_memories(memories: Sequence[tuple[str, str]]) -> str:
    lines = (f"{key}: {' '.join(value.split())[:MOST_MEMORY]}" for key, value in memories)
    return _with_head("What you remember", "\n".join(lines))


def source_of(words: Message) -> str:
    """The id of the message that these words copy; empty when they were sent to the agent directly.

    A copy keeps no task open: the original stays unread until the agent hears it.
    """
    return str(words.data.get("id", "")) if words.data.get("source") else ""


def is_aside(message: Message) -> bool:
    return bool(source_of(message))
