"""The bodies of requests. Large ones wait, unread, until the relay has memory for them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from fleet.adapters.relay.request import LARGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LARGEST = 256 << 20  # bytes of one body, which may contain pictures
MAX_RESERVED = 256 << 20  # bytes of memory for all large ones at once
COPIES = 2  # of a body: as it came, and as it is sent to a node
STALLED = 60.0  # seconds for which a client may send nothing of its body


class HeldBody:
    def __init__(self, bodies: RequestBodies) -> None:
        self._bodies = bodies
        self._cost = 0
        self.raw = bytearray()

    async def read(self, request: web.Request) -> None:
        """Read the body; unlike `request.read` this keeps no second copy during the request."""
        room = await self._reserve(_announced(request))
        while piece := await _next(request):
            if len(self.raw) + len(piece) > room:  # the request stated no length
                room = await self._reserve(LARGEST) if room < LARGEST else 0
            if not room:
                raise web.HTTPRequestEntityTooLarge(LARGEST, len(self.raw))
            self.raw += piece

    async def _reserve(self, size: int) -> int:
        """Wait for memory for a body of this size; return how many bytes it may have."""
        if size > LARGE:
            self._cost = await self._bodies.take(COPIES * size)
        return max(size, LARGE)

    def let_go(self) -> None:
        """Free the memory, once no other node will be asked."""
        self.raw = bytearray()
        self._bodies.free(self._cost)
        self._cost = 0


class RequestBodies:
    """`reserved` and `most` are bytes of memory. One body alone may take more than `most`."""

    def __init__(self, most: int = MAX_RESERVED) -> None:
        self.most = most
        self.reserved = 0
        self.waiting = 0
        self._turn = asyncio.Lock()  # in the order of arrival, else the largest would never go
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def of(self, request: web.Request) -> AsyncIterator[HeldBody]:
        body = HeldBody(self)
        try:
            await body.read(request)
            yield body
        finally:
            body.let_go()

    async def take(self, cost: int) -> int:
        self.waiting += 1
        try:
            async with self._turn:
                while self.reserved and self.reserved + cost > self.most:
                    self._freed.clear()
                    await self._freed.wait()
                self.reserved += cost
        finally:
            self.waiting -= 1
        return cost

    def free(self, cost: int) -> None:
        self.reserved -= cost
        self._freed.set()


def _announced(request: web.Request) -> int:
    """Return the request's Content-Length; 0 when it states none."""
    size = 0 if "content-encoding" in request.headers else request.content_length or 0
    if size > LARGEST:
        raise web.HTTPRequestEntityTooLarge(LARGEST, size)
    return size


async def _next(request: web.Request) -> bytes:
    """Return the next piece, empty at the end; raise status 408 when the client stalls."""
    try:
        async with asyncio.timeout(STALLED):
            return await request.content.readany()
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
