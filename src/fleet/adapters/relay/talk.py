"""One attempt of one request at one node.

It buffers what the node sends until that is the beginning of an answer. Then it is `ready`, and
waits for `go`: when two nodes were asked, only one answer may reach the client.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp

from fleet.adapters.relay import clock
from fleet.adapters.relay.connections import elsewhere, why_of
from fleet.adapters.relay.request import address, beside, body_for, in_pieces
from fleet.adapters.relay.wires import ReplyReader, ReplyTimes, error_of
from fleet.domain.data import dataclass
from fleet.domain.errors import Unavailable
from fleet.domain.nodes.breaker import NodeResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from fleet.adapters.relay.connections import Connections
    from fleet.adapters.relay.line import SlotGrant
    from fleet.adapters.relay.reply import RelayReply
    from fleet.adapters.relay.request import ModelRequest

BUSY_WORDS = ("busy", "pending requests", "overloaded", "queue", "loading model", "capacity")
NO_KEY, NO_CREDIT, NOT_THERE = 401, 402, 404
UNFIT = {403, NOT_THERE}  # this node cannot answer this request, another may
MOST_UNSAID = 1 << 20  # bytes of a stream that are buffered before they are an answer
MOST_WHOLE = 256 << 20
CLOSED = "it closed the connection without a reply"


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """A node's error, passed on to the client when no other node answers better."""

    status: int
    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended. `response` None: the client got nothing yet.

    `result` None: the node is not to blame.
    """

    response: web.StreamResponse | None
    result: NodeResult | None
    why: str = ""
    answer: FailedAnswer | None = None
    rest: float = 0.0


class _Lost(Exception):
    """The node closed the connection before its first byte."""


class RelayTalk:
    def __init__(
        self,
        connections: Connections,
        request: ModelRequest,
        grant: SlotGrant,
        reply: RelayReply,
        headers: dict[str, str],
    ) -> None:
        self._connections, self._request, self._grant = connections, request, grant
        self._reply, self._headers = reply, headers
        self._name = grant.serving.node.name
        self.reader = ReplyReader(request.wire)
        self.began = clock.now()
        self.first = 0.0  # when the node's first byte came
        self.last = 0.0
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self._go: asyncio.Future[None] = loop.create_future()
        self._speaks = False  # whether the client has got some of the answer

    def go(self) -> None:
        """Let the attempt send its answer to the client."""
        if not self._go.done():
            self._go.set_result(None)

    async def _permission(self) -> None:
        if not self.ready.done():
            self.ready.set_result(None)
        await self._go

    @property
    def clock(self) -> ReplyTimes:
        return ReplyTimes(self.first - self.began, self.last - self.first)

    async def run(self) -> AttemptEnd:
        try:
            return await self._try(fresh=False)
        except _Lost as lost:
            # The node may have closed a connection that was kept open for reuse.
            if not isinstance(
                lost.__cause__, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError
            ):
                return AttemptEnd(None, NodeResult.FAILED, str(lost))
        try:
            return await self._try(fresh=True)
        except _Lost as lost:
            return AttemptEnd(None, NodeResult.FAILED, str(lost))

    async def _try(self, *, fresh: bool) -> AttemptEnd:
        try:
            async with self._post(fresh=fresh) as answer:
                return await self._read(answer)
        except Unavailable as error:  # its key is missing here
            return AttemptEnd(None, NodeResult.UNFIT, str(error))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return AttemptEnd(None, NodeResult.UNREACHABLE, why_of(error))
        except TimeoutError:
            silent = f"it sent nothing for {clock.now() - self._grant.work.heard:.0f} s"
            if self._speaks:
                return await self._finish(silent)
            return AttemptEnd(None, NodeResult.FAILED, silent)
        except (aiohttp.ClientError, ConnectionError) as error:
            raise _Lost(why_of(error)) from error

    @asynccontextmanager
    async def _post(self, *, fresh: bool) -> AsyncIterator[aiohttp.ClientResponse]:
        serving, work = self._grant.serving, self._grant.work
        session = self._connections.fresh if fresh else self._connections.kept
        self.began, self.reader = clock.now(), ReplyReader(self._request.wire)
        async with asyncio.timeout(None) as work.timeout, session.post(
            address(serving, self._request.path),
            # Not bound to a name, so that a large body is not kept until the answer ends.
            data=in_pieces(await beside(self._request.size, body_for, serving, self._request)),
            headers=self._request.headers | self._connections.headers(serving.node),
            timeout=self._connections.patience(serving.timeout),
            allow_redirects=False,  # a prompt and a key are for this node and for no other
        ) as answer:  # fmt: skip
            yield answer

    async def _read(self, answer: aiohttp.ClientResponse) -> AttemptEnd:
        if answer.status != 200:
            return await self._read_error(answer)
        if answer.content_type == "text/html":
            return AttemptEnd(None, NodeResult.FAILED, "it answered with a page of HTML")
        if self._request.stream and self._request.wire.ends:
            return await self._stream(answer)
        body = await self._whole(answer)
        self._note_time()
        if len(body) > MOST_WHOLE:
            return AttemptEnd(
                None, NodeResult.FAILED, f"its answer is larger than {MOST_WHOLE} bytes"
            )
        await beside(len(body), self.reader.read_whole, body)
        if self.reader.failed:
            return self._instead_of_answer()
        await self._permission()
        response = await self._reply.whole(200, body, _type(answer), self._headers)
        return AttemptEnd(response, NodeResult.GOOD)

    async def _whole(self, answer: aiohttp.ClientResponse) -> bytes:
        """Read the whole answer; one that is too large is cut just above the limit."""
        pieces, size = [], 0
        while size <= MOST_WHOLE and (piece := await answer.content.readany()):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    async def _read_error(self, answer: aiohttp.ClientResponse) -> AttemptEnd:
        if answer.status < 400:
            return AttemptEnd(None, NodeResult.FAILED, elsewhere(answer))
        body = await self._whole(answer)
        failed = FailedAnswer(answer.status, body, _type(answer))
        text = body[:400].decode("utf-8", "replace")
        why = f"it answered with status {answer.status}: {error_of(body)}"
        rest = answer.headers.get("retry-after", "")
        seconds = float(rest) if rest.replace(".", "", 1).isdigit() else 0.0
        if answer.status in {429, 529} or (answer.status == 503 and (rest or _is_busy(text))):
            return AttemptEnd(None, NodeResult.BUSY, why, failed, seconds)
        if answer.status == NO_CREDIT and seconds:  # OpenRouter: then it is over soon
            return AttemptEnd(None, NodeResult.BUSY, why, failed, seconds)
        if answer.status >= 500:
            return AttemptEnd(None, NodeResult.FAILED, why, failed)
        if answer.status in {NO_KEY, NO_CREDIT} or (
            answer.status == NOT_THERE and self._is_missing(text)
        ):
            return AttemptEnd(None, NodeResult.UNFIT, why, failed)
        if answer.status in UNFIT:
            return AttemptEnd(None, None, why, failed)
        await self._permission()
        response = await self._reply.whole(answer.status, body, failed.content_type, self._headers)
        return AttemptEnd(response, NodeResult.GOOD, why)  # the node is well, the request is not

    def _is_missing(self, text: str) -> bool:
        """Whether a 404 concerns the model; otherwise it concerns the path."""
        return self._grant.serving.upstream in text

    async def _stream(self, answer: aiohttp.ClientResponse) -> AttemptEnd:
        """After the first piece of the answer no other node is tried."""
        unsaid = await self._opening(answer)
        if self.reader.failed:
            return self._instead_of_answer()
        if not self.reader.begun and len(unsaid) < MOST_UNSAID:
            raise _Lost("it ended without a reply" if unsaid else CLOSED)
        await self._permission()
        self._speaks = True
        await self._reply.begin(self._headers)
        chunk, why = unsaid, "it ended its reply early"
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

    def _instead_of_answer(self) -> AttemptEnd:
        """Return the result of an error sent with status 200, as SGLang does for a full queue."""
        why = self.reader.failed
        return AttemptEnd(None, NodeResult.BUSY if _is_busy(why) else NodeResult.FAILED, why)

    async def _opening(self, answer: aiohttp.ClientResponse) -> bytes:
        """Read until an answer begins, an error comes or the stream ends; return what was read."""
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

    async def _finish(self, why: str) -> AttemptEnd:
        if self.reader.done:
            return AttemptEnd(await self._reply.end(), NodeResult.GOOD)
        if self.reader.failed:
            return AttemptEnd(await self._reply.end(), NodeResult.FAILED, self.reader.failed)
        message = f"The node '{self._name}' broke off in the middle of its reply: {why}."
        return AttemptEnd(await self._reply.broken(message), NodeResult.FAILED, why)

    def _note_time(self) -> None:
        self.last = self._grant.work.heard = clock.now()
        self.first = self.first or self.last

    @property
    def overdue(self) -> bool:
        """Whether the node should have begun to answer by now."""
        return not self.ready.done() and clock.now() - self.began > self._grant.work.limit


def _type(answer: aiohttp.ClientResponse) -> str:
    return answer.headers.get("content-type", "application/json")


def _is_busy(text: str) -> bool:
    return any(word in text.lower() for word in BUSY_WORDS)
