"""What the prompt of a new run adds: a hand-off to its agent, and the agent's memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.addressing import as_memories, as_words, source_of
from fleet.domain.entry import EntryKind
from fleet.domain.message import MessageKind, MessageState, order_of
from fleet.operations.messages.addresses import agent_names
from fleet.ports import EntryQuery, MessageQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.entry import Entry
    from fleet.domain.message import Message
    from fleet.domain.task import Task
    from fleet.ports import Store

MAX_MEMORIES = 10  # in a prompt


def known_to(store: Store, task: Task, messages: Sequence[Message]) -> str:
    """The newest pending hand-off and the memories, as text; empty when there are none.

    `messages` are the task's. A hand-off whose copy is waiting among them is left out here.
    """
    waiting = {source_of(m) for m in messages if m.state is MessageState.OPEN}
    handoff = _handoff(store, task)
    parts = [as_words(handoff)] if handoff and handoff.id not in waiting else []
    memories = [
        (str(m.body["key"]), str(m.body["value"])) for m in _memories(store, task)[:MAX_MEMORIES]
    ]
    if memories:
        parts.append(as_memories(memories))
    return "\n\n".join(parts)


def _handoff(store: Store, task: Task) -> Message | None:
    pending = str(MessageState.OPEN)
    query = MessageQuery(MessageKind.HANDOFF, team=task.team, state=pending, limit=1)
    handoffs = [
        h
        for name in agent_names(store, task)
        for h in store.find_messages(query._replace(topic=name))
    ]
    return max(handoffs, key=lambda handoff: order_of(handoff.id), default=None)


def _memories(store: Store, task: Task) -> list[Entry]:
    """Newest first."""
    memories = [
        entry
        for name in agent_names(store, task)
        for entry in store.entries(
            EntryQuery(EntryKind.MEMORY, task.team, name, limit=MAX_MEMORIES)
        )
    ]
    return sorted(memories, key=lambda entry: entry.at, reverse=True)
