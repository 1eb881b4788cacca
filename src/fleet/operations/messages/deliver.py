"""What a team says is copied as words to the agents in its audience, and is read once they heard it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.domain import message as rules
from fleet.domain.addressing import as_words, hears_post, is_meant, names_of, source_of
from fleet.domain.entry import EntryKind
from fleet.domain.errors import NotFound
from fleet.domain.message import Message, MessageKind, MessageState, order_of
from fleet.domain.task import ENDED, TaskState
from fleet.ports import Put, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.domain.event import Event
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Change, Store

MAX_TASKS = 500  # tasks that are looked through for a name
_ID = re.compile(r"(t-[0-9]{1,18})(?:\.[0-9]{1,9})?")
WAITING = tuple(str(state) for state in TaskState if state not in ENDED)


def speak(context: Context, message: Message, agents: Iterable[Task], event: Event) -> Message:
    """Write the message and its copies for these agents, with the fact, in one commit."""
    return speak_all(context, [(message, agents)], event)[0]


def speak_all(
    context: Context, messages: Sequence[tuple[Message, Iterable[Task]]], event: Event
) -> list[Message]:
    """No agent may be in two of the audiences: its run is written with what it is to hear."""
    words = [
        change
        for message, agents in messages
        for agent in agents
        for change in words_for(context, agent, message)
    ]
    written = context.commit([*(Put(message) for message, _ in messages), *words], event)
    return [m for m in written[: len(messages)] if isinstance(m, Message)]


def at_work(store: Store, team: str) -> list[Task]:
    """The tasks of this team that an agent works on now."""
    found = store.tasks_by_id(sorted({run.task for run in store.live_runs()}))
    return [task for task in found.values() if task.team == team]


def agents_named(store: Store, team: str, names: Sequence[str]) -> list[Task]:
    """The tasks whose agents are written to by these names, each once; not those that have ended."""
    by_id = {name: found[1] for name in names if (found := _ID.fullmatch(name))}
    others = [name for name in names if name not in by_id]
    tasks = list(store.tasks_by_id(sorted(set(by_id.values()))).values())
    if others:
        tasks += at_work(store, team)
        if not all(any(is_meant(task, name) for task in tasks) for name in others):
            tasks += store.tasks(TaskQuery(states=WAITING, team=team, limit=MAX_TASKS))
    tasks = [t for t in tasks if t.team == team and t.state not in ENDED]
    meant = (next((t for t in tasks if is_meant(t, name)), None) for name in names)
    return list({task.id: task for task in meant if task is not None}.values())


def own_names(context: Context) -> tuple[str, ...]:
    """By which the actor is written to: an agent also by its task, its branch, its earlier runs."""
    name, task = context.actor.name, context.actor.task
    return tuple(dict.fromkeys((name, *names_of(context.store.task(task))))) if task else (name,)


def hearers(store: Store, board: Task, *, to: str, by: str) -> list[Task]:
    """Whose agents a post on this board is put to; `by`: the author's own task."""
    some = agents_named(store, board.team, [to]) if to else at_work(store, board.team)
    return [task for task in some if hears_post(task, board.id, to=to, by=by)]


def words_for(context: Context, task: Task, message: Message) -> list[Change]:
    """What puts this to the agent of a task, unless that is its author.

    The run, or a task that none works on, is written too: whoever ends or starts it meanwhile must
    decide again, knowing of this.
    """
    if task.join is not None or task.id == context.actor.task:
        return []
    store, at = context.store, context.store.now()
    run = store.run(task.run_id) if task.run_id else None
    live = run is not None and run.live
    if run is not None and live:
        at = max(at, run.claimed_at + 1)  # so it is told to it, and not in its prompt
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
    """Whether whoever is to hear these words has read meanwhile what they are a copy of."""
    source = _source(store, words)
    if source is None:
        return False
    return rules.is_read(source, reader) or _is_marked(store, source, reader)


def read_marks(store: Store, words: Message, reader: str, *, now: int) -> list[Change]:
    """That the reader has read what these words are a copy of, which it has just heard."""
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
    """Whether the reader has said of the whole chat that it was read."""
    chat = store.entry(EntryKind.CHAT, line.team, line.chat) if line.chat else None
    return chat is not None and order_of(chat.body["read"].get(reader, "")) >= order_of(line.id)
