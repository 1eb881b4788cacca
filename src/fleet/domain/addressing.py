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
MAX_UNASKED_CHARACTERS = 20_000  # of a message pushed into a conversation; the rest is left out
MOST_MEMORY = 500  # characters of each memory in the prompt of a new run
BREAKS = "[\x85\u2028\u2029]"  # line breaks that JSON does not escape
SOLE = ("text", "directive", "message")  # a payload with one of these alone is shown as text


FOR_ONE = frozenset({MessageKind.MAIL, MessageKind.POST, MessageKind.HANDOFF})
PRIVATE = "[private message]"
SHORTEST = 4  # characters; shorter lines of a private message are not hidden
MOST_CANDIDATES = 5  # tasks that an error lists when a name could mean several agents


class Reader(NamedTuple):
    """A member who wants to read a message. `names`: those that reach it. `task`: of an agent."""

    names: frozenset[str]
    task: str = ""
    leads: bool = False


def may_read(message: Message, reader: Reader, *, members: Collection[str] = ()) -> bool:
    """Whether a member of the message's team may read it. `members`: of its chat; empty: everyone.

    A message to one member may be read by that member, its author and the leads; a chat by its members
    alone. The copy that an agent hears is for that agent and, except from a chat, for the leads.
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
    """Return an agent's transcript with the messages that the reader may not read replaced.

    A coder may repeat a message as text or as JSON; both are replaced.
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
    """The names that reach the task's agent: the task, its runs, and the branch that it names.

    `person`: a person of the team has the same name as the branch, and the name then means the person.
    """
    runs = (f"{task.id}.{number}" for number in range(1, task.tally.runs + 1))
    branch = "" if person else task.spec.branch
    return tuple(dict.fromkeys(name for name in (task.id, branch, *runs) if name))


def agent_of_branch(branch: str, tasks: Sequence[Task]) -> Task | None:
    """The task that names this branch, or None. Raise `Mismatch` when several do."""
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
    """The data as one line of JSON: some programs read a prompt line by line."""
    text = json.dumps(data, ensure_ascii=False)
    return re.sub(BREAKS, lambda match: f"\\u{ord(match[0]):04x}", text)


def _with_head(head: str, text: str) -> str:
    """Put the head in brackets before the text, so that no program takes the text for a command."""
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
    """The id of the message that this is a copy of; empty if it was sent to the agent directly.

    A copy does not keep its task open: the original stays unread until the agent hears the copy.
    """
    return str(words.data.get("id", "")) if words.data.get("source") else ""


def is_aside(message: Message) -> bool:
    return bool(source_of(message))
