"""Reading a list page by page, from the store or from a server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.operations.shared.names import cursor_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fleet.domain.entry import Entry
    from fleet.domain.message import Message
    from fleet.domain.task import Task
    from fleet.ports import EntryQuery, MessageQuery, TaskQuery

Query = TypeVar("Query", "TaskQuery", "MessageQuery", "EntryQuery")
Row = TypeVar("Row")
Record = TypeVar("Record", "Task", "Message", "Entry")


def pages(read: Callable[[Query], list[Record]], query: Query) -> Iterator[list[Record]]:
    """Yield the pages of a list; a page is read only when the caller asks for it."""
    return _pages(read, query, lambda page: query._replace(before=page[-1].id))


def pages_of_replies(
    ask: Callable[[Any], Sequence[Row]], request: Any, size: int
) -> Iterator[Sequence[Row]]:
    """Yield the pages of a list operation, whose request has the fields `limit` and `before`."""
    request = replace(request, limit=size)
    return _pages(ask, request, lambda page: replace(request, before=cursor_of(page[-1])))


def _pages(read: Callable[[Any], Any], query: Any, after: Callable[[Any], Any]) -> Iterator[Any]:
    while True:
        page = read(query)
        yield page
        if len(page) < query.limit:
            return
        query = after(page)
