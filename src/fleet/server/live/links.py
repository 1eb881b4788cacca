"""`/ws/host`: the supervisors of other machines dial in, and answer for what is only there.

An operation that finds its run on another host raises `elsewhere`; if that host has dialled in, it
is asked the same, for the same actor. No worker needs an open port.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from fleet.domain.access import Permission, allow
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
    from collections.abc import Awaitable, Callable

    from fleet.domain.access import Actor
    from fleet.operations.catalogue import Operation
    from fleet.server.http.guard import Receive, Scope, Send
    from fleet.server.tokens import Grant

FIRST_SECONDS = 5.0
ANSWER_SECONDS = 30.0
LARGEST = 64 << 20  # bytes of an answer
POLICY = 1008
AUTH = 'The first frame is {"type": "auth", "token": "…", "host": "box-1a2b"}.'
KINDS: dict[int, type[FleetError]] = {
    kind.http_status: kind for kind in (Refused, Forbidden, BadInput, NotFound, Unavailable)
}


class Link:
    """One host. Its answers come in parts: no frame is large."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: dict[int, asyncio.Future[str]] = {}
        self._parts: dict[int, list[str]] = {}
        self._number = 0

    async def ask(self, frame: dict[str, Any]) -> str:
        self._number += 1
        number, done = self._number, asyncio.get_running_loop().create_future()
        self._waiting[number] = done
        try:
            text = encode({**frame, "id": number}).decode()
            await self._send({"type": "websocket.send", "text": text})
            async with asyncio.timeout(ANSWER_SECONDS):
                answer: str = await done
                return answer
        finally:
            self._waiting.pop(number, None)
            self._parts.pop(number, None)

    def take(self, frame: dict[str, Any]) -> None:
        number, done = frame.get("id"), self._waiting.get(frame.get("id", 0))
        if not isinstance(number, int) or done is None or done.done():
            return  # nobody waits for it any more
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


class Links:
    def __init__(self, admit: Callable[[str], Awaitable[Grant]]) -> None:
        self._admit = admit
        self._links: dict[str, Link] = {}

    def has(self, host: str) -> bool:
        return host in self._links

    async def ask(self, host: str, operation: Operation, actor: Actor, request: Any) -> Any:
        """The reply of that host; raise the error that it answered with."""
        who = {"name": actor.name, "role": str(actor.role), "team": actor.team, "run": actor.run}
        fields = json.loads(dumps(changed(request)))
        frame = {"operation": operation.name, "actor": who, "request": fields}
        try:
            answer = json.loads(await self._links[host].ask(frame))
        except (TimeoutError, KeyError):
            raise Unavailable(
                f"{host} does not answer.", fix=f"fleet host show {host}", code="host_mute"
            ) from None
        if error := answer.get("error"):
            kind = KINDS.get(error["status"], Unavailable)
            raise kind(error["message"], fix=error["fix"], code=error["code"])
        return reader(operation.reply, strict=False)(answer["data"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # that it wants to connect
        await send({"type": "websocket.accept"})
        try:
            host = await self._welcome(scope, receive)
        except (TimeoutError, FleetError, HTTPException) as error:
            why = error.message if isinstance(error, FleetError) else AUTH
            await send({"type": "websocket.close", "code": POLICY, "reason": why[:60]})
            return
        link = self._links[host] = Link(send)
        try:
            while (message := await receive())["type"] != "websocket.disconnect":
                with suppress(FleetError):
                    link.take(object_of((message.get("text") or "").encode()))
        finally:
            link.end()
            if self._links.get(host) is link:
                del self._links[host]

    async def _welcome(self, scope: Scope, receive: Receive) -> str:
        async with asyncio.timeout(FIRST_SECONDS):
            message = await receive()
        frame = object_of((message.get("text") or "").encode())
        token, host = frame.get("token"), frame.get("host")
        if frame.get("type") != "auth" or not isinstance(token, str) or not isinstance(host, str):
            raise Forbidden(AUTH, code="no_token")
        grant = await self._admit(token)
        allow(grant.actor, Permission.ADMIN)
        scope["state"][GUEST].prove()
        return host
