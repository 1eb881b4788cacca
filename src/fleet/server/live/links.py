"""`/ws/host`: the supervisors of other machines dial in, and answer for what is only there.

Each has a token that is bound to its host's id, so no machine can pass for another.

An operation that finds its run on another host raises `elsewhere`. If that host is connected, the
server passes the operation on to it, for the same actor. So no worker needs an open port.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections import Counter
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from fleet.domain.errors import (
    BadInput,
    FleetError,
    Forbidden,
    NotFound,
    Refused,
    Unavailable,
)
from fleet.domain.record_json import changed, dumps, reader
from fleet.server.http.codec import encode, object_of
from fleet.server.http.connections import GUEST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from fleet.domain.access import Actor
    from fleet.operations.catalogue import Operation
    from fleet.operations.tasks.transcript import Seat
    from fleet.ports import SeatedAt
    from fleet.server.http.guard import Receive, Scope, Send
    from fleet.server.tokens import TokenGrant

FIRST_SECONDS = 5.0
ANSWER_SECONDS = 30.0
LARGEST = 64 << 20  # bytes of an answer
POLICY = 1008
MOST_ASKED = 20  # requests of one member that other hosts are answering
CHECK_SECONDS = 10.0  # between looks at whether its token still counts
WINDOW = 256 << 10  # bytes of a terminal that may be sent and not yet read
MOST_AHEAD = 4 * WINDOW
NUMBER = struct.Struct(">I")  # the terminal's number, before the bytes of its output
FIX = "`fleet host add BOX --server URL` gives a machine its own."
AUTH = 'The first frame is {"type": "auth", "token": "…", "host": "box-1a2b"}.'
AGAIN = Refused("This machine has connected again.", fix="One connection is enough.")
KINDS: dict[int, type[FleetError]] = {
    kind.http_status: kind for kind in (Refused, Forbidden, BadInput, NotFound, Unavailable)
}


class Link:
    """The connection to one host. Replies arrive in parts, terminal output in binary frames."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self._waiting: dict[int, asyncio.Future[str]] = {}
        self._parts: dict[int, list[str]] = {}
        self._seats: dict[int, FarTerminal] = {}
        self._number = 0

    async def ask(self, frame: dict[str, Any]) -> str:
        self._number += 1
        return await self._ask(self._number, frame)

    async def sit(self, frame: dict[str, Any]) -> tuple[str, FarTerminal]:
        """Ask the host for a terminal; return its reply (perhaps an error) and the terminal."""
        self._number += 1
        terminal = self._seats[self._number] = FarTerminal(self, self._number)
        try:
            return await self._ask(terminal.number, frame), terminal
        except BaseException:
            self.forget(terminal.number)
            raise

    def forget(self, number: int) -> None:
        self._seats.pop(number, None)

    async def _ask(self, number: int, frame: dict[str, Any]) -> str:
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[number] = done
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self.say({**frame, "id": number})  # waits while the host reads nothing
                return await done
        finally:
            self._waiting.pop(number, None)
            self._parts.pop(number, None)

    async def say(self, frame: dict[str, Any]) -> None:
        await self.send({"type": "websocket.send", "text": encode(frame).decode()})

    async def say_bytes(self, number: int, data: bytes) -> None:
        await self.send({"type": "websocket.send", "bytes": NUMBER.pack(number) + data})

    def hear(self, message: Mapping[str, Any]) -> None:
        data = message.get("bytes")
        if data is None:
            self.take(object_of((message.get("text") or "").encode()))
        elif len(data) > NUMBER.size and (seat := self._seats.get(NUMBER.unpack_from(data)[0])):
            seat.show(data[NUMBER.size :])

    def take(self, frame: dict[str, Any]) -> None:
        number, done = frame.get("id"), self._waiting.get(frame.get("id", 0))
        if isinstance(number, int) and "left" in frame and number in self._seats:
            self._seats[number].show(b"")
            return
        if not isinstance(number, int) or done is None or done.done():
            return  # the caller no longer waits
        parts = self._parts.setdefault(number, [])
        parts.append(str(frame.get("part", "")))
        if sum(map(len, parts)) > LARGEST:
            done.set_exception(Unavailable("The answer of the host is too large."))
        elif frame.get("last"):
            done.set_result("".join(parts))

    def end(self) -> None:
        for done in self._waiting.values():
            if not done.done():
                done.set_exception(Unavailable("The host has disconnected."))
        for seat in self._seats.values():
            seat.show(b"")


class FarTerminal:
    """A terminal of another host, which sends at most `WINDOW` bytes ahead of the reader.

    The terminal of a host that sends far more is closed.
    """

    def __init__(self, link: Link, number: int) -> None:
        self._link, self.number = link, number
        self._output: asyncio.Queue[bytes] = asyncio.Queue()
        self._read = self._ahead = 0

    def show(self, data: bytes) -> None:
        self._ahead += len(data)
        if self._ahead <= MOST_AHEAD:
            self._output.put_nowait(data)
        else:
            self._link.forget(self.number)
            self._output.put_nowait(b"")

    async def read(self) -> bytes:
        if self._read >= WINDOW // 4:
            await self._link.say({"id": self.number, "read": self._read})
            self._read = 0
        data = await self._output.get()
        self._read += len(data)
        self._ahead -= len(data)
        return data

    async def write(self, data: bytes) -> None:
        await self._link.say_bytes(self.number, data)

    async def resize(self, size: tuple[int, int]) -> None:
        await self._link.say({"id": self.number, "size": size})

    async def leave(self) -> None:
        self._link.forget(self.number)
        with suppress(Exception):  # the host may have left
            await self._link.say({"id": self.number, "leave": True})


class Links:
    """The connected hosts. `renew` returns a newer token for a host; empty: not needed yet."""

    def __init__(
        self,
        admit: Callable[[str], Awaitable[TokenGrant]],
        renew: Callable[[TokenGrant], Awaitable[str]],
    ) -> None:
        self._admit, self._renew = admit, renew
        self._links: dict[str, Link] = {}
        self._unanswered: Counter[tuple[str, str]] = Counter()  # questions of each member

    def has(self, host: str) -> bool:
        return host in self._links

    async def ask(self, host: str, operation: Operation, actor: Actor, request: Any) -> Any:
        """Let a host carry out an operation; return its reply, or raise the error it replied."""
        fields = json.loads(dumps(changed(request)))
        frame = {"operation": operation.name, "actor": _who(actor), "request": fields}
        try:
            with self._one_of(actor):
                text = await self._links[host].ask(frame)
        except (TimeoutError, KeyError):
            raise _mute(host) from None
        return _answered(host, text, reader(operation.reply, strict=False))

    @contextmanager
    def _one_of(self, actor: Actor) -> Iterator[None]:
        """Count a member's open request; raise `Refused` when too many wait for their reply."""
        member = (actor.team, actor.name)
        if self._unanswered[member] >= MOST_ASKED:
            raise Refused(
                f"{actor.name} waits for {MOST_ASKED} answers of other machines already.",
                fix="Wait for these first.",
                code="too_many_at_once",
            )
        self._unanswered[member] += 1
        try:
            yield
        finally:
            self._unanswered[member] -= 1
            if not self._unanswered[member]:
                del self._unanswered[member]

    async def sit(self, seat: Seat, actor: Actor, size: tuple[int, int]) -> SeatedAt:
        """Open a terminal of that host, which checks the actor and records who opened it."""
        frame = {"seat": seat.run, "actor": _who(actor), "size": size}
        try:
            text, terminal = await self._links[seat.host].sit(frame)
        except (TimeoutError, KeyError):
            raise _mute(seat.host) from None
        try:
            _answered(seat.host, text, lambda answer: answer)
        except FleetError:
            await terminal.leave()
            raise
        return terminal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # that it wants to connect
        await send({"type": "websocket.accept"})
        try:
            token, grant = await self._welcome(scope, receive)
        except (TimeoutError, FleetError, HTTPException) as error:
            await _refuse(send, error)
            return
        host, link = grant.host, Link(send)
        older, self._links[host] = self._links.get(host), link
        if older is not None:  # one link for each machine: the newest replaces the others
            with suppress(Exception):  # it may have left
                await _refuse(older.send, AGAIN)
        watching = asyncio.create_task(self._watch(link, token, grant, send))
        try:
            while (message := await receive())["type"] != "websocket.disconnect":
                with suppress(FleetError):
                    link.hear(message)
        finally:
            watching.cancel()
            link.end()
            if self._links.get(host) is link:
                del self._links[host]

    async def _welcome(self, scope: Scope, receive: Receive) -> tuple[str, TokenGrant]:
        async with asyncio.timeout(FIRST_SECONDS):
            message = await receive()
        frame = object_of((message.get("text") or "").encode())
        token, host = frame.get("token"), frame.get("host")
        if frame.get("type") != "auth" or not isinstance(token, str) or not isinstance(host, str):
            raise Forbidden(AUTH, code="no_token")
        grant = await self._admit(token)
        if not grant.host:
            raise Forbidden("That is not the token of a machine.", fix=FIX, code="not_a_host")
        if grant.host != host:
            words = f"That is the token of {grant.host}, not of {host[:60]}."
            raise Forbidden(words, fix=FIX, code="other_host")
        scope["state"][GUEST].prove()
        return token, grant

    async def _watch(self, link: Link, token: str, grant: TokenGrant, send: Send) -> None:
        """End the link when its token expires or is revoked; renew the token before it expires."""
        while True:
            issued_at = grant.at / 1e6
            if time.time() > issued_at + (grant.until - issued_at) / 2 and (
                new := await self._renew(grant)
            ):
                await link.say({"type": "token", "token": new})
                token = new
            await asyncio.sleep(CHECK_SECONDS)
            try:
                grant = await self._admit(token)
            except FleetError as error:
                await _refuse(send, error)
                return
            except HTTPException:
                continue


def _who(actor: Actor) -> dict[str, str]:
    return {"name": actor.name, "role": str(actor.role), "team": actor.team, "run": actor.run}


def _answered(host: str, text: str, read: Callable[[Any], Any]) -> Any:
    """Return a machine's reply, decoded by `read`; raise the error if it replied one."""
    try:
        answer = json.loads(text)
        error = answer.get("error")
        if not error:
            return read(answer["data"])
        kind = KINDS.get(error["status"], Unavailable)
        refused = kind(str(error["message"]), fix=str(error["fix"]), code=str(error["code"]))
    except Exception:  # noqa: BLE001  # whatever is wrong with what another machine sends
        raise Unavailable(
            f"{host} sent a reply that this server does not understand.",
            fix=f"Install this release there: fleet host add {host}",
            code="host_unclear",
        ) from None
    raise refused


def _mute(host: str) -> Unavailable:
    return Unavailable(f"{host} does not answer.", fix=f"fleet host show {host}", code="host_mute")


async def _refuse(send: Send, error: Exception) -> None:
    why = f"{error.message} {error.fix}".strip() if isinstance(error, FleetError) else AUTH
    frame = {"type": "error", "message": why}
    await send({"type": "websocket.send", "text": encode(frame).decode()})
    await send({"type": "websocket.close", "code": POLICY, "reason": why[:60]})
