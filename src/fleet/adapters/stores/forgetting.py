"""How a store forgets what is old: each step is one transaction, and short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.stores.codec import decode
from fleet.adapters.stores.rows import RUN_BITS, searched, seq_of
from fleet.domain.data import NamedTuple
from fleet.domain.task import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.stores.sql import Holder

FIRST = "first_event"  # the row of `meta` with the number before which events may be missing
SET_FIRST = """
INSERT INTO meta (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
WHERE CAST(meta.value AS BIGINT) < CAST(excluded.value AS BIGINT)
"""
DROP_TASK = """
DELETE FROM task WHERE seq = :seq AND id = :id AND version = :version
AND state IN ('done', 'failed', 'cancelled')
AND NOT EXISTS (SELECT 1 FROM dep WHERE needs = :seq)
AND NOT EXISTS (SELECT 1 FROM task AS child WHERE child.parent = :id AND child.parent <> '')
"""
WITH_TASK = (
    "DELETE FROM run WHERE seq >= :first AND seq <= :last",
    "DELETE FROM progress WHERE seq >= :first AND seq <= :last",
    "DELETE FROM message WHERE task = :seq",
    "DELETE FROM landing WHERE task = :id",
    "DELETE FROM dep WHERE task = :seq",
    # the last one stays: SQLite would give its number again
    "DELETE FROM event WHERE task = :id AND number < (SELECT max(number) FROM event)",
)


class DropEvents(NamedTuple):
    """Drop the events from `first` to below `beyond`, but not those of these tasks, which go on."""

    first: int
    beyond: int
    keep: Sequence[str]


class DropTasks(NamedTuple):
    """Drop those of these tasks, each an id and a version, that are unchanged and no other refers to."""

    tasks: Sequence[Sequence[Any]]


Step = DropEvents | DropTasks


def first_event(db: Holder) -> int:
    rows = db.rows("SELECT value FROM meta WHERE key = :key", {"key": FIRST})
    return int(rows[0][0]) if rows else 1


def forget(db: Holder, step: Step) -> list[str]:
    """Inside a write transaction; the ids of the tasks that are gone."""
    if isinstance(step, DropEvents):
        _drop_events(db, step)
        return []
    return [task for task, version in step.tasks if _drop_task(db, task, version)]


def _drop_events(db: Holder, step: DropEvents) -> None:
    values: dict[str, Any] = {f"k{n}": task for n, task in enumerate(step.keep)}
    but = f" AND task NOT IN ({', '.join(f':{name}' for name in values)})" if values else ""
    sql = f"DELETE FROM event WHERE number >= :first AND number < :beyond{but}"  # noqa: S608  # nosec B608  # names we made
    db.change(sql, {**values, "first": step.first, "beyond": step.beyond})
    db.change(SET_FIRST, {"key": FIRST, "value": str(step.beyond)})


def _drop_task(db: Holder, task: str, version: int) -> bool:
    seq = seq_of(task)
    values = {"seq": seq, "id": task, "version": version}
    rows = db.rows("SELECT body FROM task WHERE seq = :seq", {"seq": seq})
    if not rows or not db.change(DROP_TASK, values):
        return False
    if not db.change("DELETE FROM task_unsearched WHERE seq = :seq", {"seq": seq}):
        db.forget(seq, searched(decode(Task, version, rows[0][0])))
    first = seq << RUN_BITS
    values |= {"first": first, "last": first + (1 << RUN_BITS) - 1}
    for sql in WITH_TASK:
        names = [name for name in values if f":{name}" in sql]
        db.change(sql, {name: values[name] for name in names})
    return True
