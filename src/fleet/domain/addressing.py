"""Whom a message is for, who may read it, and the text that an agent hears of it.

An agent's address is its task's id, or its branch where no person of the team has that name; any
other name is a person's. So a branch never takes a person's mail.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import Mismatch
from fleet.domain.message import MessageKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fleet.domain.message import Message
    from fleet.domain.run import Summary
    from fleet.domain.task import Task

TO_ALL = "to_all"  # in the data of mail that was sent to the whole team
MAX_UNASKED_CHARACTERS = (
    20_000  # of a message that enters a conversation unasked; the rest stays where it was posted
)
MOST_MEMORY = 500  # characters of each memory that a new run is told
BREAKS = "[\x85\u2028\u2029]"  # line breaks that JSON leaves as they are
SOLE = ("text", "directive", "message")  # a payload with one of these alone is shown as text


FOR_ONE = frozenset({MessageKind.MAIL, MessageKind.POST, MessageKind.HANDOFF})
PRIVATE = "[private message]"
SHORTEST = 4  # characters of a line that is private; a shorter one says little
MOST_CANDIDATES = 5  # candidates that are listed when a name could mean several agents


class Reader(NamedTuple):
    """A member of a team who would read a message. `names` reach it; an agent has a `task`."""

    names: frozenset[str]
    task: str = ""
    leads: bool = False


def may_read(message: Message, reader: Reader, *, members: Collection[str] = ()) -> bool:
    """Whether a member of the message's team may read it. `members`: of its chat; empty: all.

    A message for one is read by that one, its author and those who lead; a chat by its members
    alone. The copy that an agent hears is for that agent: others read the original, if they may.
    """
    if message.author in reader.names:
        return True
    if message.chat:
        return not members or not reader.names.isdisjoint(members)
    if source := message.data.get("source"):
        return message.task == reader.task or (reader.leads and source != MessageKind.CHAT)
    if message.kind not in FOR_ONE or not message.to:
        return True
    return message.to in reader.names or reader.leads


def without_private(
    lines: Sequence[str], messages: Sequence[Message], reader: Reader
) -> tuple[str, ...]:
    """Lines of the transcript of an agent, without those messages to it that are not the reader's.

    A coder repeats what it heard, as text or in JSON.
    """
    texts = [m.text for m in messages if not may_read(m, reader)]
    private = {line.strip() for text in texts for line in text.splitlines()}
    forms = {
        form
        for line in private
        if len(line) >= SHORTEST
        for form in (line, json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1])
    }
    longest_first = sorted(forms, key=len, reverse=True)
    return tuple(_without(line, longest_first) for line in lines) if forms else tuple(lines)


def _without(line: str, forms: Sequence[str]) -> str:
    for form in forms:
        line = line.replace(form, PRIVATE)
    return line


def names_of(task: Task, *, person: bool) -> tuple[str, ...]:
    """The names that reach its agent: the task, any of its runs, and the branch it asked for.

    `person`: a person of its team has the branch's name; then the branch reaches only them.
    """
    runs = (f"{task.id}.{number}" for number in range(1, task.tally.runs + 1))
    branch = "" if person else task.spec.branch
    return tuple(dict.fromkeys(name for name in (task.id, branch, *runs) if name))


def agent_of_branch(branch: str, tasks: Sequence[Task]) -> Task | None:
    """The one task of these whose agent has the branch. Raise `BadInput` when there are several."""
    named = [task for task in tasks if task.spec.branch == branch]
    if len(named) > 1:
        known = ", ".join(
            f"{t.id} ({' '.join(t.title.split())[:40]})" for t in named[:MOST_CANDIDATES]
        )
        raise Mismatch(
            f"'{branch[:60]}' could mean {len(named)} agents: {known}.",
            fix=f"Use the task's id: {named[0].id}",
            code="ambiguous",
        )
    return named[0] if named else None


def hears_post(task: Task, board: str, *, by: str = "") -> bool:
    """Whether the agent of this task hears a post on that board. `by`: the author's own task.

    The agents of the board's task and of its children hear it.
    """
    return task.id != by and board in {task.id, task.parent}


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
        case MessageKind.HANDOFF if (
            message.details.checkpoint and message.details.checkpoint.outline
        ):
            return as_checkpoint(author, message.details.checkpoint.outline)
    head = f"To the whole team, from {author}" if TO_ALL in data else f"Mail from {author}"
    return _with_head(
        f"{head}: {message.details.subject}" if message.details.subject else head, message.text
    )


def as_checkpoint(author: str, outline: Summary) -> str:
    known = {key: value for key, value in asdict(outline).items() if value}
    return _with_head(f"Checkpoint from {author}", _one_line(known))


def _payload(data: Mapping[str, Any]) -> str:
    payload = data["payload"]
    if len(payload) == 1:
        ((key, value),) = payload.items()
        if key in SOLE and isinstance(value, str):
            return value
    return _one_line(payload)


def _one_line(data: Mapping[str, Any]) -> str:
    """The text as JSON: some programs read a prompt line by line, so no line may begin within it."""
    text = json.dumps(data, ensure_ascii=False)
    return re.sub(BREAKS, lambda match: f"\\u{ord(match[0]):04x}", text)


def _with_head(head: str, text: str) -> str:
    """Start with a bracket, so that no program takes the text for one of its own commands."""
    cut = (
        "" if len(text) <= MAX_UNASKED_CHARACTERS else "\n… (shortened: this is only its beginning)"
    )
    return f"[{' '.join(head.split())}]\n{text[:MAX_UNASKED_CHARACTERS]}{cut}"


def as_memories(memories: Sequence[tuple[str, str]]) -> str:
    lines = (
        f"- {' '.join(key.split())}: {' '.join(value.split())[:MOST_MEMORY]}"
        for key, value in memories
    )
    return _with_head("What you remember", "\n".join(lines))


def source_of(words: Message) -> str:
    """The id of the message that these words copy; empty when they were sent to the agent directly.

    A copy keeps no task open: the original stays unread until the agent hears it.
    """
    return str(words.data.get("id", "")) if words.data.get("source") else ""


def is_aside(message: Message) -> bool:
    return bool(source_of(message))
