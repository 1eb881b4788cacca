"""A client of a Fleet server for Python programs: `from fleet import connect`.

What can be asked for are the requests of the operations themselves; each names the type of its
reply, so there is nothing here for any one of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
import uuid
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.app.server_address import DEFAULT_URL, Remote, named_url
from fleet.base.outside import microseconds, moment
from fleet.domain.data import NamedTuple
from fleet.domain.errors import (
    BadInput,
    Conflict,
    FleetError,
    Forbidden,
    NotFound,
    Refused,
    Unavailable,
)
from fleet.operations.catalogue import Request, find
from fleet.operations.shared.names import PAGE
from fleet.operations.shared.pages import pages_of_replies

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

__all__ = [
    "AsyncFleet", "BadInput", "Conflict", "Event", "Fleet", "FleetError", "Forbidden", "NotFound",
    "Refused", "Unavailable", "connect", "connect_async", "moment",
]  # fmt: skip

Reply = TypeVar("Reply")
Row = TypeVar("Row")

TRIES = 5  # of a request, while the server does not answer or is busy
FIRST_WAIT = 0.2  # seconds; each further wait is twice as long
AGAIN = frozenset({"no_server", "too_many_requests", "unavailable"})


class Event(NamedTuple):
    """Something that happened; `at` is in microseconds, as in every row: see `moment`."""

    number: int
    type: str
    task: str
    run: str
    actor: str
    at: int
    data: dict[str, Any]


class Fleet:
    """A server, asked as the owner of the token."""

    def __init__(self, url: str, token: str, *, tries: int = TRIES) -> None:
        self._remote, self._tries = Remote(url, token), tries
        self.url = self._remote.url

    def call(self, request: Request[Reply]) -> Reply:
        """Carry out an operation. Raise `FleetError`, which has a `code` and a `fix`.

        If the server does not answer, the same request is sent again. It carries a key, so that
        the server carries it out once.
        """
        operation = find(type(request))
        key = "" if operation.is_read else str(uuid.uuid4())

        def attempt() -> Reply:
            reply: Reply = self._remote.call(operation.name, request, operation.reply, key=key)
            return reply

        return self._again(attempt)

    def each(self, request: Request[tuple[Row, ...]]) -> Iterator[Row]:
        """Every row of a list, page by page. The request's `limit` is the size of a page."""
        listing: Any = request
        limit = min(listing.limit or PAGE, PAGE)
        for page in pages_of_replies(self.call, listing, limit):
            yield from page

    def events(self, after: int | None = None) -> Iterator[Event]:
        """Events as they happen, without end; first those that came after the number `after`.

        A connection that breaks is made again, and no event is missed or doubled.
        """
        while True:
            stream = self._again(partial(self._stream, after))
            with suppress(Unavailable):  # it broke: go on after the last event
                for event in stream:
                    after = event.number
                    if event.type:
                        yield event

    def _stream(self, after: int | None) -> Iterator[Event]:
        path = "/events" if after is None else f"/events?after={after}"
        lines = self._remote.lines(path)
        first = next(lines, None)  # so that a refusal is raised here
        return _events(lines) if first is not None else iter(())

    def _again(self, attempt: Callable[[], Reply]) -> Reply:
        wait = FIRST_WAIT
        for _ in range(self._tries - 1):
            try:
                return attempt()
            except FleetError as error:
                if error.code not in AGAIN:
                    raise
            time.sleep(wait)
            wait *= 2
        return attempt()


class AsyncFleet:
    """The same for asyncio: each request is sent in a thread."""

    def __init__(self, url: str, token: str, *, tries: int = TRIES) -> None:
        self._fleet = Fleet(url, token, tries=tries)
        self.url = self._fleet.url

    async def call(self, request: Request[Reply]) -> Reply:
        return await asyncio.to_thread(self._fleet.call, request)

    async def each(self, request: Request[tuple[Row, ...]]) -> AsyncIterator[Row]:
        rows = self._fleet.each(request)
        while (row := await asyncio.to_thread(next, rows, None)) is not None:
            yield row

    async def events(self, after: int | None = None) -> AsyncIterator[Event]:
        events = self._fleet.events(after)
        while True:
            yield await asyncio.to_thread(next, events)


def connect(url: str = "", token: str = "", *, tries: int = TRIES) -> Fleet:
    """Connect to the server at `url`, else at FLEET_URL, else on this machine's usual port.

    `token` is else FLEET_TOKEN; `fleet token create NAME` makes one.
    """
    return Fleet(*_address(url, token), tries=tries)


def connect_async(url: str = "", token: str = "", *, tries: int = TRIES) -> AsyncFleet:
    """Like `connect`, for asyncio."""
    return AsyncFleet(*_address(url, token), tries=tries)


def _address(url: str, token: str) -> tuple[str, str]:
    return url or named_url(os.environ) or DEFAULT_URL, token or os.environ.get("FLEET_TOKEN", "")


def _events(lines: Iterator[str]) -> Iterator[Event]:
    """The events of a stream. One without a type only says where the stream begins."""
    for line in lines:
        if not line.startswith("data: {"):
            continue
        values = json.loads(line.removeprefix("data: "))
        if "type" in values:
            values["at"] = microseconds(values["at"])
            yield Event(*(values[name] for name in Event._fields))
        elif "number" in values:
            yield Event(values["number"], "", "", "", "", 0, {})
