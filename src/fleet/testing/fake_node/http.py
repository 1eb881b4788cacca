"""HTTP as a stand-in node speaks it: by hand, so that it can also be spoken badly."""

from __future__ import annotations

import asyncio
import json
import struct
from contextlib import suppress
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

from fleet.domain.data import NamedTuple

REASONS = {200: "OK", 404: "Not Found", 429: "Too Many Requests", 503: "Service Unavailable"}


class Left(Exception):
    """The client went away."""


class NodeHttpRequest(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Connection:
    """One client. `drip`: seconds between single bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._early = b""
        self._watch: asyncio.Task[bytes] | None = None
        self.drip = 0.0

    async def request(self, idle: float) -> NodeHttpRequest | None:
        """The next request; None when the client sends no more."""
        try:
            async with asyncio.timeout(idle or None):
                head = self._early + await self._reader.readuntil(b"\r\n\r\n")
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            return None
        self._early = b""
        first, *lines = head.decode("latin-1").rstrip().split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        raw = await self._reader.readexactly(int(headers.get("content-length", 0)))
        body: Any = raw.decode("utf-8", "replace")
        with suppress(ValueError):
            body = json.loads(raw) if raw else None
        return NodeHttpRequest(method, target.split("?")[0], headers, body)

    def watch(self) -> None:
        self._watch = asyncio.create_task(self._reader.read(1))

    async def unwatch(self) -> None:
        """What came early is the begin of the next request."""
        if self._watch is None:
            return
        self._watch.cancel()
        with suppress(asyncio.CancelledError, ConnectionError):
            self._early = await self._watch
        self._watch = None

    async def pause(self, seconds: float) -> None:
        """Raise `Left` as soon as the client is gone."""
        if seconds <= 0:
            await asyncio.sleep(0)
        elif self._watch is not None and not self._watch.done():
            await asyncio.wait({self._watch}, timeout=seconds)
        else:
            await asyncio.sleep(seconds)
        self.check()

    async def turn(self, gate: asyncio.Condition, free: Any) -> None:
        """Wait until `free()`, as long as the client does."""
        while not free():
            waiting = asyncio.create_task(_notified(gate))
            watched = {waiting} | ({self._watch} if self._watch else set())
            await asyncio.wait(watched, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            self.check()

    def check(self) -> None:
        gone = self._watch is not None and self._watch.done()
        if gone and self._watch and (self._watch.exception() or not self._watch.result()):
            raise Left
        if self._writer.transport.is_closing():
            raise Left

    async def write(self, data: bytes) -> None:
        steps = [data[n : n + 1] for n in range(len(data))] if self.drip else [data]
        for step in steps:
            if self.drip:
                await self.pause(self.drip)
            self._writer.write(step)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise Left from error

    async def answer(self, status: int, content_type: str, body: bytes, **more: str) -> None:
        await self.write(_head(status, content_type, length=len(body), **more) + body)

    async def json(self, status: int, value: Any, **more: str) -> None:
        await self.answer(status, "application/json", json.dumps(value).encode(), **more)

    async def begin(self, content_type: str) -> None:
        await self.write(_head(200, content_type))

    async def piece(self, data: bytes) -> None:
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.write(b"0\r\n\r\n")

    def abort(self) -> None:
        """Break the connection with a reset, as if the machine lost power."""
        sock = self._writer.get_extra_info("socket")
        with suppress(OSError, AttributeError):
            sock.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()


async def _notified(gate: asyncio.Condition) -> None:
    async with gate:
        await gate.wait()


def _head(status: int, content_type: str, length: int | None = None, **more: str) -> bytes:
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in more.items())
    first = f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\n"
    return f"{first}Content-Type: {content_type}\r\n{extra}{size}\r\n\r\n".encode("latin-1")
