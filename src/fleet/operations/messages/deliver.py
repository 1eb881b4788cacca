"""Copy messages into the conversations of the agents in their audience.

An agent that has heard the copy has read the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain import message as rules
from fleet.domain.addressing import as_words, hears_post, source_of
from fleet.domain.entry import EntryKind
from fleet.domain.errors import NotFound
from fleet.domain.message import Message, MessageKind, MessageState, order_of
from fleet.domain.task import TaskState
from fleet.operations.shared.causes import may_speak
from fleet.ports import Put, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.domain.event import Event
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Change, Store

MAX_TASKS = 500  # tasks of a board whose agents hear a post


def speak(context: Context, message: Message, agents: Iterable[Task], event: Event) -> Message:
    """Write the message, its copies for these agents and the event in one commit."""
    return speak_all(context, [(message, agents)], event)[0]


def speak_all(
    context: Context, messages: Sequence[tuple[Message, Iterable[Task]]], event: Event
) -> list[Message]:
    """Write these messages, their copies and the event in one commit.

    No agent may be in two audiences, as the commit can write its run only once.
    """
    words = [
        change
        for message, agents in messages
        for agent in agents
        for change in words_for(context, agent, message)
    ]
    written = context.commit([*(Put(message) for message, _ in messages), *words], event)
    return [m for m in written[: len(messages)] if isinstance(m, Message)]


def hearers(store: Store, board: Task, *, by: str) -> list[Task]:
    """The tasks whose agents hear a post to all on this board; `by`: the author's own task."""
    query = TaskQuery(parent=board.id, at_work=True, limit=MAX_TASKS)
    around = (board, *store.tasks(query))
    candidates = (task for task in around if task.state is TaskState.RUNNING)
    return [task for task in candidates if hears_post(task, board.id, by=by)]


def words_for(context: Context, task: Task, message: Message) -> list[Change]:
    """The changes that copy the message to the agent of a task; none if the actor may not speak to it.

    They also write the task's live run, or else the task, so that a supervisor that ends or starts the
    run meanwhile has a conflict and decides again.
    """
    if task.join is not None or task.id == context.actor.task or not may_speak(context, task):
        return []
    store, at = context.store, context.store.now()
    run = store.run(task.run_id) if task.run_id else None
    live = run is not None and run.live
    if run is not None and live:
        at = max(at, run.claimed_at + 1)  # after the claim: the run's prompt lacks the message
    words = Message(
        id=store.new_id("m"),
        version=0,
        task=task.id,
        author=context.actor.name,
        kind=MessageKind.WORDS,
        text=as_words(message),
        state=MessageState.OPEN,
        at=at,
        data={"source": str(message.kind), "id": message.id},
    )
    return [Put(words), Put(run) if run is not None and live else Put(task)]


def is_read(store: Store, words: Message, reader: str) -> bool:
    """Whether the reader has read the message that `words` is a copy of."""
    source = _source(store, words)
    if source is None:
        return False
    return rules.is_read(source, reader) or _is_marked(store, source, reader)


def read_marks(store: Store, words: Message, reader: str, *, now: int) -> list[Change]:
    """The change that marks the message that `words` is a copy of as read by the reader, if any."""
    source = _source(store, words)
    if source is None or rules.is_read(source, reader):
        return []
    return [Put(rules.read(source, reader, at=now))]


def _source(store: Store, words: Message) -> Message | None:
    try:
        return store.message(source_of(words)) if source_of(words) else None
    except NotFound:
        return None


def _is_marked(store: Store, line: Message, reader: str) -> bool:
    """Whether the reader has marked the chat as read up to this line."""
    chat = store.entry(EntryKind.CHAT, line.team, line.chat) if line.chat else None
    return chat is not None and order_of(chat.body["read"].get(reader, "")) >= order_of(line.id)
