"""`/events`: events as a stream that a browser's EventSource reads, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from fleet.domain.access import Permission, allow
from fleet.domain.errors import BadInput
from fleet.server.http.codec import encode
from fleet.server.http.connections import GUEST
from fleet.server.http.wire import TRANSPORT
from fleet.server.live.frames import Wrap, view_of
from fleet.server.live.stream import StreamReader, newest_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fleet.domain.access import Actor
    from fleet.ports import Store
    from fleet.server.http.guard import Receive, Scope, Send
    from fleet.server.live.stream import ReaderEnd, Streams
    from fleet.server.tokens import TokenGrant

    State = Callable[[Store, Actor], dict[str, Any]]

HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
    "connection": "close",
}
NUMBER = re.compile("[0-9]{1,18}")
IN_URL = frozenset({"token", "access_token", "auth_token", "jwt", "authorization", "bearer"})


class EventStream:
    """Serves `/events`. `grant` returns the caller's token; `state`, what an actor sees now."""

    def __init__(
        self,
        streams: Streams,
        grant: Callable[[Request], Awaitable[tuple[str, TokenGrant]]],
        state: State,
    ) -> None:
        self._streams, self._grant, self._state = streams, grant, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        refuse_token_in(request)
        token, grant = await self._grant(request)
        actor = grant.actor
        allow(actor, Permission.READ)
        after = _after(request)
        if request.method == "HEAD":
            await Response(b"", headers=HEADERS)(scope, receive, send)
            return
        with self._streams.one_of(actor):
            scope["state"][GUEST].paced = True
            number = await self._streams.start_of(after)
            opening = {} if after is not None else await state_at(self._streams, self._state, actor)
            headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            wrap = Wrap.CHUNKS if scope["http_version"] != "1.0" else Wrap.PLAIN
            reader = StreamReader(
                scope["state"][TRANSPORT], view_of(actor, wrap), token,
                opening.get("number", number), _last_words(send), wrap(b": still here\n\n"),
            )  # fmt: skip
            await self._read(reader, opening, receive)

    async def _read(self, reader: StreamReader, opening: dict[str, Any], receive: Receive) -> None:
        ready = b"retry: 1000\nid: %d\nevent: ready\ndata: %b\n\n"
        self._streams.admit(reader)
        try:
            reader.write(reader.view.wrap(ready % (reader.number, encode(opening))))
            await self._streams.join(reader)
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            self._streams.leave(reader)


def _last_words(send: Send) -> Callable[[ReaderEnd], Any]:
    async def say(ending: ReaderEnd) -> None:
        fields = {"code": ending.code, "message": ending.said, "after": ending.after}
        body = b"event: ended\ndata: %b\n\n" % encode(fields)
        await send({"type": "http.response.body", "body": body, "more_body": False})

    return say


async def state_at(streams: Streams, state: State, actor: Actor) -> dict[str, Any]:
    """Return what the actor sees now, with the number of the last event included in it."""

    def read(store: Store) -> dict[str, Any]:
        for _ in range(5):  # while others write: until nothing happened in between
            number = newest_in(store)
            seen = state(store, actor)
            if newest_in(store) == number:
                break
        return {"number": number, **seen}

    return await streams.reads.do(f"{actor.team}/{actor.name}", read, kind="state")


def refuse_token_in(connection: HTTPConnection) -> None:
    """Raise `BadInput` when a token is in the URL: logs and browser histories keep URLs."""
    if any(name.lower() in IN_URL for name in connection.query_params):
        raise BadInput(
            "Tokens are not accepted in URLs, because URLs end up in logs.",
            fix="Send it as `Authorization: Bearer`, on /ws in the first frame; revoke this one.",
            code="token_in_url",
        )


def _after(request: Request) -> int | None:
    number = request.headers.get("last-event-id") or request.query_params.get("after", "")
    if number and not NUMBER.fullmatch(number):
        raise BadInput(
            f"'{number[:50]}' is not the number of an event.", fix="Leave it out, or give a number."
        )
    return int(number) if number else None
