"""What was left for the agent of a task, by its earlier runs or by others: told as it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.addressing import as_known, names_of
from fleet.domain.entry import EntryKind
from fleet.ports import EntryQuery

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.domain.task import Task
    from fleet.ports import Store

MOST = 10  # memories


def known_to(store: Store, task: Task) -> str:
    """The newest checkpoint that waits for it, and what it remembers; empty when there is nothing."""
    saved = [e for e in _of(store, EntryKind.CHECKPOINT, task) if e.body["status"] == "pending"]
    kept = [
        (str(entry.body["key"]), str(entry.body["value"]))
        for entry in _of(store, EntryKind.MEMORY, task)[:MOST]
    ]
    checkpoint = saved[0] if saved else None
    summary = checkpoint.body["summary"] if checkpoint else {}
    return as_known(checkpoint.body["sender"] if checkpoint else "", summary, kept)


def _of(store: Store, kind: EntryKind, task: Task) -> list[Entry]:
    """Newest first."""
    found = [
        entry
        for name in names_of(task)
        for entry in store.entries(EntryQuery(kind, task.team, name, limit=MOST))
    ]
    return sorted(found, key=lambda entry: entry.at, reverse=True)
