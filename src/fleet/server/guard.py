"""What every request passes before anything looks at what it asks: where it is for, and from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fleet.server.problem import TYPE, problem
from fleet.server.speech import encode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY = 1 << 20
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Guard:
    """`hosts` are the names by which this server may be called; empty: any.

    A page that a browser shows may only talk to the server that it came from.
    """

    def __init__(self, app: App, *, hosts: frozenset[str], body: int = BODY) -> None:
        self._app, self._hosts, self._body = app, hosts, body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        refused = self._refused(dict(scope["headers"]))
        if refused is not None:
            await _refuse(scope, send, *refused)
            return
        await self._app(scope, _bounded(receive, self._body), send)

    def _refused(self, headers: dict[bytes, bytes]) -> tuple[int, str, str] | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if self._hosts and (urlsplit(f"//{host}").hostname or "") not in self._hosts:
            return 421, "wrong_host", f"This server does not answer to '{host[:100]}'."
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and urlsplit(origin).netloc != host:
            return 403, "wrong_origin", "A page of another site may not talk to this server."
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self._body:
            return 413, "too_large", f"The body is over {self._body} bytes."
        return None


def _bounded(receive: Receive, most: int) -> Receive:
    """A body without a length is counted as it comes."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > most:
                raise TooLarge(most)
        return message

    return counted


class TooLarge(Exception):
    def __init__(self, most: int) -> None:
        super().__init__(f"The body is over {most} bytes.")


async def _refuse(scope: Scope, send: Send, status: int, code: str, detail: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": code})
        return
    headers = [(b"content-type", TYPE.encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = encode(problem(status, code, detail))
    await send({"type": "http.response.body", "body": body})


class Rates:
    """A bucket for each token: `rate` requests a second on the whole, `burst` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: dict[str, tuple[float, float]] = {}

    def wait(self, who: str) -> float:
        """Seconds until it may ask; 0: now, and it is counted."""
        now = time.monotonic()
        left, at = self._left.get(who, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        if left < 1:
            return (1 - left) / self._rate
        if len(self._left) > 10_000:  # those who are gone are forgotten
            self._left.clear()
        self._left[who] = (left - 1, now)
        return 0.0
