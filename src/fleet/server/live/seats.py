"""`/ws/terminal`: sit down at an agent's terminal. Bytes both ways; who leaves ends only its own client."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from fleet.domain.errors import BadInput, FleetError, Forbidden, Refused
from fleet.operations.catalogue import find
from fleet.operations.tasks.transcript import AttachRun, Seat
from fleet.server.http.codec import encode, object_of
from fleet.server.http.connections import GUEST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from fleet.domain.access import Actor
    from fleet.operations.catalogue import Operation
    from fleet.ports import SeatedAt
    from fleet.server.http.guard import Receive, Scope, Send
    from fleet.server.tokens import TokenGrant

MAX_SEATS = 16  # people who sit at terminals
FIRST_SECONDS = 5.0  # for the first frame
WRITE_SECONDS = 5.0  # for what is typed to be taken
CHECK_SECONDS = 2.0  # between looks at whether its token still counts
COLUMNS, ROWS = (20, 500), (5, 200)
POLICY = 1008
AUTH = 'The first frame is {"type": "auth", "token": "…", "run": "t-3"}.'


class SeatGone(Exception):
    """The client has disconnected, or the terminal has ended."""


class Seats:
    """Opens terminals for WebSocket clients. `perform` checks the role and records who opened what.

    `here` opens a terminal of this host by the command that attaches to it, `there` the terminal
    of a run on another host.
    """

    def __init__(
        self,
        admit: Callable[[str], Awaitable[TokenGrant]],
        perform: Callable[[Operation, Actor, Any], Awaitable[Any]],
        here: Callable[[Sequence[str], tuple[int, int]], SeatedAt],
        there: Callable[[Seat, Actor, tuple[int, int]], Awaitable[SeatedAt]],
    ) -> None:
        self._admit, self._perform, self._here, self._there = admit, perform, here, there
        self._taken = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # that it wants to connect
        await send({"type": "websocket.accept"})
        try:
            token, terminal = await self._welcome(scope, receive)
        except TimeoutError:
            await _close(send, AUTH)
        except SeatGone:
            return
        except (FleetError, HTTPException) as error:
            await _close(send, _sentence(error), getattr(error, "code", ""))
        else:
            try:
                await _OpenSeat(terminal, receive, send).sit(lambda: self._admit(token))
            finally:
                self._taken -= 1

    async def _welcome(self, scope: Scope, receive: Receive) -> tuple[str, SeatedAt]:
        async with asyncio.timeout(FIRST_SECONDS):
            frame = _object(await _next(receive))
        token, run = frame.get("token"), frame.get("run")
        if frame.get("type") != "auth" or not isinstance(token, str) or not isinstance(run, str):
            raise Forbidden(AUTH, code="no_token")
        grant = await self._admit(token)
        scope["state"][GUEST].prove()
        seat: Seat = await self._perform(find(AttachRun), grant.actor, AttachRun(run))
        if self._taken >= MAX_SEATS:  # last: a caller that waits for an answer has no seat yet
            raise Refused(
                f"{MAX_SEATS} terminals are open through this server, which is the limit.",
                fix="Try later.",
            )
        self._taken += 1
        try:
            if seat.host:
                return token, await self._there(seat, grant.actor, _size(frame))
            return token, self._here(seat.argv, _size(frame))
        except BaseException:
            self._taken -= 1
            raise


class _OpenSeat:
    def __init__(self, terminal: SeatedAt, receive: Receive, send: Send) -> None:
        self._terminal, self._receive, self._send = terminal, receive, send

    async def sit(self, check: Callable[[], Awaitable[object]]) -> None:
        """Serve until the terminal, the client or the token ends; the agent and others go on."""
        await self._send({"type": "websocket.send", "text": '{"type":"seated"}'})
        parts = [asyncio.create_task(p) for p in (self._show(), self._type(), _watch(check))]
        why = "The connection to the terminal ended."
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                error = part.exception()
                if isinstance(error, FleetError):
                    why = error.message
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            await self._terminal.leave()
        with suppress(Exception):  # it may have left
            await _close(self._send, why, number=1000)

    async def _show(self) -> None:
        while data := await self._terminal.read():
            await self._send({"type": "websocket.send", "bytes": data})

    async def _type(self) -> None:
        while True:
            message = await _next(self._receive)
            data = message.get("bytes")
            if data is None:
                frame = _object(message)
                if frame.get("type") == "size":
                    await self._terminal.resize(_size(frame))
                continue
            async with asyncio.timeout(WRITE_SECONDS):
                await self._terminal.write(data)


async def _watch(check: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        with suppress(HTTPException):
            await check()


async def _next(receive: Receive) -> Mapping[str, Any]:
    message: Mapping[str, Any] = await receive()
    if message["type"] == "websocket.disconnect":
        raise SeatGone
    return message


def _object(message: Mapping[str, Any]) -> dict[str, Any]:
    text = message.get("text")
    if text is None:
        raise BadInput("This frame must be JSON text.", fix=AUTH, code="not_json")
    return object_of(text.encode())


def _size(frame: Mapping[str, Any]) -> tuple[int, int]:
    """Return the rows and columns that a client asks for, within limits, or the default size."""
    rows, columns = frame.get("rows"), frame.get("columns")
    if not isinstance(rows, int) or not isinstance(columns, int):
        return 30, 100
    return max(ROWS[0], min(rows, ROWS[1])), max(COLUMNS[0], min(columns, COLUMNS[1]))


def _sentence(error: FleetError | HTTPException) -> str:
    if isinstance(error, HTTPException):
        return "Too many requests. Wait a little."
    return f"{error.public or error.message} {error.fix}".strip()


async def _close(send: Send, why: str, code: str = "", *, number: int = POLICY) -> None:
    frame = {"type": "error" if number == POLICY else "left", "message": why, "code": code}
    await send({"type": "websocket.send", "text": encode(frame).decode()})
    await send({"type": "websocket.close", "code": number, "reason": why[:60]})
