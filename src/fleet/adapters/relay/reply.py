"""The reply to the client: heartbeats until the first byte, and an error when it breaks off."""

from __future__ import annotations

import asyncio
import json
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from fleet.adapters.relay.request import ModelRequest

GONE = (aiohttp.ClientConnectionResetError, ConnectionResetError)
TO_READ = 0.5  # seconds in which a client reads the error, before the connection breaks
UNREAD = 60.0  # seconds for which a client may read nothing of what is sent to it
EVENTS, LINES = "text/event-stream", "application/x-ndjson"


class ClientGone(Exception):
    """The client closed the connection."""


class RelayReply:
    """`begun`: the status is sent, so an error can only be part of the reply."""

    def __init__(self, request: web.Request, model_request: ModelRequest, heartbeat: float) -> None:
        self._request = request
        self._model_request = model_request
        self._pause = heartbeat
        self._stream: web.StreamResponse | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._beating: asyncio.Task[None] | None = None
        self._broken = False
        self._in_line = False  # the last line has no end yet
        self.status = 0
        if heartbeat > 0 and model_request.stream:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(heartbeat, self._beat)

    @property
    def begun(self) -> bool:
        return self._stream is not None

    async def begin(self, headers: dict[str, str]) -> web.StreamResponse:
        await self.quiet()
        if self._stream is None:
            try:
                self._stream = await self._prepared(headers)
            except GONE as error:
                raise ClientGone from error
        return self._stream

    async def write(self, data: bytes) -> None:
        """Raise `ClientGone` when the client closed the connection."""
        assert self._stream is not None
        self._in_line = not data.endswith(b"\n")
        await self._sent(self._stream.write(data))

    async def end(self) -> web.StreamResponse:
        assert self._stream is not None
        await self._sent(self._stream.write_eof())
        return self._stream

    async def _sent(self, writing: Coroutine[Any, Any, None]) -> None:
        """Await a write; raise `ClientGone` if the client, perhaps suspended, reads nothing."""
        try:
            async with asyncio.timeout(UNREAD):
                await writing
        except GONE as error:
            raise ClientGone from error
        except TimeoutError as error:
            if self._request.transport is not None:
                self._request.transport.abort()
            raise ClientGone from error

    async def quiet(self) -> None:
        """Stop the heartbeat."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
            with suppress(asyncio.CancelledError, *GONE):
                await beating

    async def whole(
        self, status: int, body: bytes, content_type: str, headers: dict[str, str]
    ) -> web.StreamResponse:
        await self.quiet()
        if self._stream is not None:
            return await self._late(status, body)
        self.status = status
        return web.Response(
            status=status, body=body, headers=headers | {"content-type": content_type}
        )

    async def refuse(
        self,
        status: int,
        message: str,
        headers: dict[str, str],
        after: float = 0.0,
        code: str = "",
    ) -> web.StreamResponse:
        """Reply with an error in the request's wire format."""
        if after > 0:
            headers = headers | {"retry-after": str(max(1, math.ceil(after)))}
        body = json.dumps(self._model_request.wire.error(message, status, code)).encode()
        return await self.whole(status, body, "application/json", headers)

    async def broken(self, message: str, status: int = 502) -> web.StreamResponse:
        """Send the error, and no end marker, so that every client notices; then `hang_up`."""
        stream, wire = await self.begin({}), self._model_request.wire
        await self.write(b"\n" * (wire.lines and self._in_line) + wire.broken(message, status))
        self._broken = True
        return stream

    async def hang_up(self) -> None:
        """Close the connection after a reply that broke off; call it last.

        It waits a moment, because a client may drop unread data, such as the error, when the
        connection breaks.
        """
        if not self._broken:
            return
        try:
            await asyncio.sleep(TO_READ)
        finally:
            if self._request.transport is not None:
                self._request.transport.close()

    async def _late(self, status: int, body: bytes) -> web.StreamResponse:
        text = body.decode("utf-8", "replace")
        try:
            error = json.loads(text).get("error", text)
            text = error.get("message", text) if isinstance(error, dict) else str(error)
        except (ValueError, AttributeError):
            pass
        self.status = status
        return await self.broken(text[:2000], status)

    async def _prepared(self, headers: dict[str, str]) -> web.StreamResponse:
        kind = LINES if self._model_request.wire.lines else EVENTS
        more = {"content-type": kind, "cache-control": "no-cache"}
        stream = web.StreamResponse(status=200, headers=headers | more)
        self.status = 200
        await stream.prepare(self._request)
        return stream

    def _beat(self) -> None:
        self._timer = None
        self._beating = asyncio.create_task(self._beats())

    async def _beats(self) -> None:
        ping = self._model_request.wire.ping(self._model_request.model)
        self._stream = await self._prepared({})
        while True:
            await self._stream.write(ping)
            await asyncio.sleep(self._pause)
