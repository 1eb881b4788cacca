"""Reading a list page by page, for what the store cannot select by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleet.domain.entry import Entry
    from fleet.domain.message import Message
    from fleet.domain.task import Task
    from fleet.ports import EntryQuery, MessageQuery, TaskQuery

Query = TypeVar("Query", "TaskQuery", "MessageQuery", "EntryQuery")
Record = TypeVar("Record", "Task", "Message", "Entry")


def pages(read: Callable[[Query], list[Record]], query: Query) -> Iterator[list[Record]]:
    """Each page is read when it is asked for, so that whoever has enough reads no more."""
    while True:
        page = read(query)
        yield page
        if len(page) < query.limit:
            return
        query = query._replace(before=page[-1].id)
