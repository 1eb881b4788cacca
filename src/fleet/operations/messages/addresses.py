"""Finds the person or agent that a name in a request means, and the names that reach the caller."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.domain.access import LEADS, Role
from fleet.domain.addressing import Reader, agent_of_branch, may_read, names_of
from fleet.domain.data import NamedTuple
from fleet.domain.entry import EntryKind
from fleet.domain.errors import NotFound
from fleet.domain.task import ENDED, TaskState
from fleet.operations.shared.names import LIST, message_on_task
from fleet.ports import EntryQuery, TaskQuery

if TYPE_CHECKING:
    from fleet.domain.access import Actor
    from fleet.domain.message import Message
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Store

MAX_TASKS = 10  # tasks with one branch name
MAX_TOKENS = 50  # tokens to search for a person who has one but has not been seen
ID = r"(t-[0-9]{1,18})(?:\.[0-9]{1,9})?"
WAITING = tuple(str(state) for state in TaskState if state not in ENDED)


class Address(NamedTuple):
    """`to` is a person's name or the id of the agent's task; `agent`: that task, unless it ended."""

    to: str
    agent: Task | None = None


def address(store: Store, team: str, name: str) -> Address:
    """Whom the name means: a task's id its agent; else a person of the team; else an agent's branch.

    Any other name is taken for a person who has not been seen yet. Raise `NotFound` for an id without
    a task in this team, and `Mismatch` with the candidates for a branch of several agents.
    """
    if match := re.fullmatch(ID, name):
        task = store.tasks_by_id([match[1]]).get(match[1])
        if task is None or task.team != team:
            raise NotFound(f"There is no task '{name[:60]}'.", fix=LIST)
        return Address(task.id, None if task.state in ENDED else task)
    if is_person(store, team, name):
        return Address(name)
    query = TaskQuery(states=WAITING, team=team, branches=(name,), limit=MAX_TASKS)
    agent = agent_of_branch(name, store.tasks(query))
    return Address(agent.id, agent) if agent else Address(name)


def at_work(store: Store, team: str) -> list[Task]:
    """The tasks of this team that have a live run."""
    tasks = store.tasks_by_id(sorted({run.task for run in store.live_runs()}))
    return [task for task in tasks.values() if task.team == team]


def is_person(store: Store, team: str, name: str) -> bool:
    """Whether a person of this team has the name: was seen, or was given a token or enrolment."""
    if not name or re.fullmatch(ID, name):
        return False
    if store.entry(EntryKind.MEMBER, team, name) is not None:
        return True
    kinds = (EntryKind.TOKEN, EntryKind.ENROLMENT)
    named = (
        entry.body
        for kind in kinds
        for entry in store.entries(EntryQuery(kind, owner=name, limit=MAX_TOKENS))
    )
    return any(body.get("team") == team or body.get("role") == Role.COORDINATOR for body in named)


def agent_names(store: Store, task: Task) -> tuple[str, ...]:
    """The names that reach the agent of this task."""
    return names_of(task, person=is_person(store, task.team, task.spec.branch))


def own_names(store: Store, actor: Actor) -> tuple[str, ...]:
    """The names that reach the actor; for an agent, also its task, its branch and earlier runs."""
    if not actor.task:
        return (actor.name,)
    return tuple(dict.fromkeys((actor.name, *agent_names(store, store.task(actor.task)))))


def reader_of(store: Store, actor: Actor) -> Reader:
    return Reader(frozenset(own_names(store, actor)), actor.task, actor.role in LEADS)


def readable_on_task(context: Context, name: str) -> Message | None:
    """The message of this id about a task; None if there is none that the actor may read."""
    message = message_on_task(context, name)
    return (
        message
        if message is not None and may_read(message, reader_of(context.store, context.actor))
        else None
    )
