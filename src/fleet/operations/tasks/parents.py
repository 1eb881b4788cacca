"""A task that is made of children follows them, in the same commit as the child."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.task import join
from fleet.ports import Put, TaskQuery

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.ports import Change, Store

MOST = 10_000


def children(store: Store, task: Task) -> list[Task]:
    """Those it is made of, oldest first."""
    if task.join is None:
        return []
    return store.tasks(TaskQuery(parent=task.id, limit=MOST, oldest_first=True))


def parent_changes(store: Store, child: Task, *, now: int) -> list[Change]:
    """Every parent is written, also one that stays as it is: two last children must meet there."""
    changes: list[Change] = []
    while child.parent:
        parent = store.task(child.parent)
        others = [s for s in children(store, parent) if s.id != child.id]
        child = join(parent, [*others, child], now=now)
        changes.append(Put(child))
    return changes
