"""One try of one request at one node.

It keeps what the node says to itself until that is an answer; then it is `ready`, and goes on when
it is told to: of two nodes that were asked the same, only one may speak to the client.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from io import BytesIO
from typing import TYPE_CHECKING

import aiohttp

from fleet.adapters.relay import clock
from fleet.adapters.relay.connections import elsewhere, why_of
from fleet.adapters.relay.request import LARGE, address, body_for
from fleet.adapters.relay.wires import Clock, ReplyReader
from fleet.domain.data import dataclass
from fleet.domain.errors import Unavailable
from fleet.domain.nodes.breaker import Result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from fleet.adapters.relay.connections import Connections
    from fleet.adapters.relay.line import Grant
    from fleet.adapters.relay.reply import Reply
    from fleet.adapters.relay.request import ModelRequest
    from fleet.domain.fleet import Serving

BUSY_WORDS = ("busy", "pending requests", "overloaded", "queue", "loading model", "capacity")
UNFIT = {401, 403, 404}  # this node cannot answer, another may
NO_CREDIT = 402
NO_CREDIT_REST = 60.0  # seconds; nobody pays a bill sooner
MOST_UNSAID = 1 << 20  # bytes of a stream that are kept before they are an answer
MOST_WHOLE = 256 << 20
CLOSED = "it closed the connection without a reply"


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """A node's error, passed on to the client when no other node answers better."""

    status: int
    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class Ended:
    """`response` None: the client got nothing yet. `result` None: the node is not to blame."""

    response: web.StreamResponse | None
    result: Result | None
    why: str = ""
    answer: FailedAnswer | None = None
    rest: float = 0.0


class _Lost(Exception):
    """The node closed the connection before its first byte."""


class Talk:
    def __init__(
        self,
        connections: Connections,
        request: ModelRequest,
        grant: Grant,
        reply: Reply,
        headers: dict[str, str],
    ) -> None:
        self._connections, self._request, self._grant = connections, request, grant
        self._reply, self._headers = reply, headers
        self._name = grant.serving.node.name
        self.reader = ReplyReader(request.wire)
        self.began = clock.now()
        self.first = 0.0  # when its first byte came
        self.last = 0.0
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self._go: asyncio.Future[None] = loop.create_future()

    def go(self) -> None:
        """Now it may speak to the client."""
        if not self._go.done():
            self._go.set_result(None)

    async def _permission(self) -> None:
        if not self.ready.done():
            self.ready.set_result(None)
        await self._go

    @property
    def clock(self) -> Clock:
        return Clock(self.first - self.began, self.last - self.first)

    async def run(self) -> Ended:
        try:
            return await self._try(fresh=False)
        except _Lost as lost:
            # The node may have closed a connection that was kept open for reuse.
            if not isinstance(
                lost.__cause__, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError
            ):
                return Ended(None, Result.FAILED, str(lost))
        try:
            return await self._try(fresh=True)
        except _Lost as lost:
            return Ended(None, Result.FAILED, str(lost))

    async def _try(self, *, fresh: bool) -> Ended:
        try:
            async with self._post(fresh=fresh) as answer:
                return await self._read(answer)
        except Unavailable as error:
            return Ended(None, None, str(error))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return Ended(None, Result.UNREACHABLE, why_of(error))
        except TimeoutError:
            silent = f"it said nothing for {clock.now() - self._grant.work.heard:.0f} s"
            return Ended(None, Result.FAILED, silent)
        except (aiohttp.ClientError, ConnectionError) as error:
            raise _Lost(why_of(error)) from error

    @asynccontextmanager
    async def _post(self, *, fresh: bool) -> AsyncIterator[aiohttp.ClientResponse]:
        serving, work = self._grant.serving, self._grant.work
        session = self._connections.fresh if fresh else self._connections.kept
        self.began, self.reader = clock.now(), ReplyReader(self._request.wire)
        body = await self._body(serving)
        async with asyncio.timeout(None) as work.timeout, session.post(
            address(serving, self._request.path),
            data=body,
            headers=self._request.headers | self._connections.headers(serving.node),
            timeout=self._connections.patience(serving.timeout),
            allow_redirects=False,  # a prompt and a key are for this node and for no other
        ) as answer:  # fmt: skip
            yield answer

    async def _body(self, serving: Serving) -> bytes | BytesIO:
        """A large one is written beside the loop, and sent in pieces."""
        if self._request.size <= LARGE:
            return body_for(serving, self._request)
        return BytesIO(await asyncio.to_thread(body_for, serving, self._request))

    async def _read(self, answer: aiohttp.ClientResponse) -> Ended:
        if answer.status != 200:
            return await self._read_error(answer)
        if answer.content_type == "text/html":
            return Ended(None, Result.FAILED, "it answered with a page of HTML")
        if self._request.stream and self._request.wire.ends:
            return await self._stream(answer)
        body = await answer.content.read(MOST_WHOLE)
        body += await answer.read()
        self._note_time()
        self.reader.read_whole(body)
        if self.reader.failed:
            return Ended(None, Result.FAILED, self.reader.failed)
        await self._permission()
        response = await self._reply.whole(200, body, _type(answer), self._headers)
        return Ended(response, Result.GOOD)

    async def _read_error(self, answer: aiohttp.ClientResponse) -> Ended:
        if answer.status < 400:
            return Ended(None, Result.FAILED, elsewhere(answer))
        body = await answer.read()
        failed = FailedAnswer(answer.status, body, _type(answer))
        text = body[:400].decode("utf-8", "replace")
        why = f"it answered with status {answer.status}: {text[:200]}"
        rest = answer.headers.get("retry-after", "")
        seconds = float(rest) if rest.replace(".", "", 1).isdigit() else 0.0
        if answer.status in {429, 529} or (answer.status == 503 and (rest or _is_busy(text))):
            return Ended(None, Result.BUSY, why, failed, seconds)
        if answer.status == NO_CREDIT:  # OpenRouter: only with Retry-After is it over soon
            return Ended(None, Result.BUSY, why, failed, seconds or NO_CREDIT_REST)
        if answer.status >= 500:
            return Ended(None, Result.FAILED, why, failed)
        if answer.status in UNFIT:
            return Ended(None, None, why, failed)
        await self._permission()
        response = await self._reply.whole(answer.status, body, failed.content_type, self._headers)
        return Ended(response, Result.GOOD, why)  # the node is well, the request is not

    async def _stream(self, answer: aiohttp.ClientResponse) -> Ended:
        """After the first piece of the answer no other node is tried."""
        unsaid = await self._opening(answer)
        if self.reader.failed:
            return Ended(None, Result.FAILED, self.reader.failed)
        if not self.reader.begun and len(unsaid) < MOST_UNSAID:
            raise _Lost("it ended without a reply" if unsaid else CLOSED)
        await self._permission()
        await self._reply.begin(self._headers)
        chunk, why = unsaid, "it ended its reply before the end"
        try:
            while chunk:
                await self._reply.write(chunk)
                chunk = await answer.content.readany()
                self._note_time()
                self.reader.feed(chunk)
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            why = why_of(error)
        self.reader.finish()
        return await self._finish(why)

    async def _opening(self, answer: aiohttp.ClientResponse) -> bytes:
        """What it says until that is an answer, an error, or all that it says."""
        unsaid = b""
        while not self.reader.begun and not self.reader.failed and len(unsaid) < MOST_UNSAID:
            chunk = await answer.content.readany()
            self._note_time()
            if not chunk:
                self.reader.finish()
                break
            self.reader.feed(chunk)
            unsaid += chunk
        return unsaid

    async def _finish(self, why: str) -> Ended:
        if self.reader.done:
            return Ended(await self._reply.end(), Result.GOOD)
        if self.reader.failed:
            return Ended(await self._reply.end(), Result.FAILED, self.reader.failed)
        message = f"The node '{self._name}' broke off in the middle of its reply: {why}."
        return Ended(await self._reply.broken(message), Result.FAILED, why)

    def _note_time(self) -> None:
        self.last = self._grant.work.heard = clock.now()
        self.first = self.first or self.last

    @property
    def overdue(self) -> bool:
        """Whether it should have said something by now."""
        return not self.ready.done() and clock.now() - self.began > self._grant.work.limit


def _type(answer: aiohttp.ClientResponse) -> str:
    return answer.headers.get("content-type", "application/json")


def _is_busy(text: str) -> bool:
    return any(word in text.lower() for word in BUSY_WORDS)
