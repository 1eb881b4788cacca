"""Mail and posts become words for the agents at work, and are read once those were heard."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.addressing import MAIL, hears_post, is_meant, names_of, source_of
from fleet.domain.errors import NotFound
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.task import ENDED, TaskState
from fleet.ports import Put, TaskQuery

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Change, Store

MOST = 500  # tasks that are looked through for a name
_ID = re.compile(r"(t-[0-9]{1,18})(?:\.[0-9]{1,9})?")
WAITING = tuple(str(state) for state in TaskState if state not in ENDED)


def at_work(store: Store, team: str) -> list[Task]:
    """The tasks of this team that an agent works on now."""
    found = store.tasks_by_id(sorted({run.task for run in store.live_runs()}))
    return [task for task in found.values() if task.team == team]


def agent_named(store: Store, team: str, name: str) -> Task | None:
    """The task whose agent is written to by that name, unless it has ended."""
    if said := _ID.fullmatch(name):
        try:
            found = [store.task(said[1])]
        except NotFound:
            return None
    else:
        found = at_work(store, team) or []
        if not any(is_meant(task, name) for task in found):
            found = store.tasks(TaskQuery(states=WAITING, team=team, limit=MOST))
    mine = (t for t in found if t.team == team and t.state not in ENDED and is_meant(t, name))
    return next(mine, None)


def own_names(context: Context) -> tuple[str, ...]:
    """By which the actor is written to: an agent also by its task, its branch, its earlier runs."""
    name, task = context.actor.name, context.actor.task
    return tuple(dict.fromkeys((name, *names_of(context.store.task(task))))) if task else (name,)


def hearers(store: Store, board: Task, *, to: str, by: str) -> list[Task]:
    """Whose agents a post on this board is put to; `by`: the author's own task."""
    named = agent_named(store, board.team, to) if to else None
    some = ([named] if named else []) if to else at_work(store, board.team)
    return [task for task in some if hears_post(task, board.id, to=to, by=by)]


def words_for(context: Context, task: Task, text: str, source: str, what: str) -> list[Change]:
    """What puts this to the agent of a task.

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
        text=text,
        state=MessageState.OPEN,
        at=at,
        data={"source": source, "id": what},
    )
    return [Put(words), Put(run) if run is not None and live else Put(task)]


def is_read(store: Store, message: Message, reader: str) -> bool:
    """Whether whoever is to hear these words has read meanwhile what they tell of."""
    source, what = source_of(message)
    if not source:
        return False
    try:
        if source == MAIL:
            return bool(store.entry_by_id(what).body.get("read_at"))
        return reader in store.message(what).readers
    except NotFound:
        return False


def read_marks(store: Store, message: Message, reader: str, *, now: int) -> list[Change]:
    """That the reader has read what these words tell of, which it has just heard."""
    source, what = source_of(message)
    if not source or is_read(store, message, reader):
        return []
    try:
        if source == MAIL:
            return [Put(as_read(store.entry_by_id(what), now))]
        post = store.message(what)
    except NotFound:
        return []
    return [Put(replace(post, readers=(*post.readers, reader)))]


def as_read(mail: Entry, now: int) -> Entry:
    return replace(mail, body={**mail.body, "read_at": now})
