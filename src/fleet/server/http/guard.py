"""What every request passes before anything looks at what it asks: where it is for, and from."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.responses import Response

from fleet.server.http.codec import encode
from fleet.server.http.problem import TYPE, problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping

    from starlette.requests import Request

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY = 1 << 20
STRANGERS_BODY = 16 << 10
BYTES_PER_REQUEST = 16 << 10  # of a body; a larger one counts as more requests
REQUEST_SECONDS = 15.0  # seconds in which all headers, and then the whole body, must have come
HEADERS = 200  # of one request
HOSTS = 16  # addresses whose names are kept: clients send the same ones again and again
SOCKETS = frozenset({"/ws", "/ws/terminal", "/ws/host"})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
DENIAL = "websocket.http.response"  # what a server can do that refuses a socket with words


def client_address(scope: Scope) -> str:
    """The client's address. Behind a proxy of `server.trusted_proxies` it is what the proxy says."""
    client = scope.get("client")
    return str(client[0]) if client else ""


class Guard:
    """Refuses requests for other host names or from pages of other sites, and large bodies.

    `hosts`: the names by which clients may call this server; empty: any.
    """

    def __init__(self, app: App, *, hosts: frozenset[str], body: int = BODY) -> None:
        self._app, self._body = app, body
        self._hosts = frozenset(_plain(host) for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        refused = _refused_shape(scope) or self._refused(dict(scope["headers"]))
        if refused is not None:
            await _refuse(scope, send, *refused)
            return
        if scope["type"] == "http":
            receive = _bounded(receive, self._body)
        await self._app(scope, receive, send)

    def _refused(self, headers: dict[bytes, bytes]) -> tuple[int, str, str] | None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self._hosts and _name_of(f"//{host}") not in self._hosts:
            return 421, "wrong_host", f"This server does not answer to '{host[:100]}'."
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and (not _name_of(origin) or urlsplit(origin).netloc.lower() != host):
            return 403, "wrong_origin", "A page of another site may not talk to this server."
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > self._body:
            return 413, "too_large", f"The body is over {self._body} bytes."
        has_body = length.strip(b"0") or b"transfer-encoding" in headers
        if has_body and not _is_json(headers.get(b"content-type", b"")):
            return 415, "not_json", "Content-Type must be application/json."
        return None


def _refused_shape(scope: Scope) -> tuple[int, str, str] | None:
    if len(scope["headers"]) > HEADERS:
        return 431, "too_many_headers", f"There are over {HEADERS} headers."
    if scope["type"] == "websocket" and scope["path"] not in SOCKETS:
        return 404, "no_such_path", "The only WebSockets are at /ws, /ws/terminal and /ws/host."
    return None


@lru_cache(HOSTS)
def _name_of(url: str) -> str:
    """Return the host of a URL; empty when it is not a URL."""
    try:
        return _plain(urlsplit(url).hostname or "")
    except ValueError:
        return ""


def _plain(host: str) -> str:
    """Return a host name in lower case, without the dot at its end."""
    return host.lower().removesuffix(".")


def _is_json(kind: bytes) -> bool:
    """Whether a Content-Type is JSON or missing: a browser's form always sends one."""
    plain = kind.partition(b";")[0].strip().lower()
    return plain in {b"", b"application/json"} or plain.endswith(b"+json")


def _bounded(receive: Receive, most: int) -> Receive:
    """Wrap `receive` to raise `TooLarge` once a body without Content-Length is too long."""
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


async def body_of_stranger(request: Request) -> bytes:
    """Return the body of a request that needs no token; raise `TooLarge` over a small limit."""
    body = await request.body()
    if len(body) > STRANGERS_BODY:
        raise TooLarge(STRANGERS_BODY)
    return body


class BadBody(Exception):
    """A body that the server does not read to its end: it closes the connection after replying."""

    status, code = 400, "bad_body"


class TooLarge(BadBody):
    status, code = 413, "too_large"

    def __init__(self, most: int) -> None:
        super().__init__(f"The body is over {most} bytes.")


def refused_body(error: BadBody) -> Response:
    body = encode(problem(error.status, error.code, str(error)))
    return Response(body, error.status, {"connection": "close"}, TYPE)


async def _refuse(scope: Scope, send: Send, status: int, code: str, detail: str) -> None:
    kind = "http.response"
    if scope["type"] == "websocket":
        if DENIAL not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008, "reason": code})
            return
        kind = DENIAL
    body = encode(problem(status, code, detail))
    headers = [
        (b"content-type", TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


def cost_of(headers: Mapping[str, str]) -> int:
    """Return how many requests this one counts as in its token's rate: more for a large body."""
    length = headers.get("content-length", "")
    chunked = BODY if "transfer-encoding" in headers else 0
    size = min(int(length[:20]), BODY) if length.isdecimal() else chunked
    return 1 + size // BYTES_PER_REQUEST


class Rates:
    """A token bucket for each caller: `rate` requests a second on average, `burst` at once."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left: dict[str, tuple[float, float]] = {}

    def wait(self, who: str, cost: int = 1) -> float:
        """Return the seconds until the caller may send it; 0: now, and `cost` is deducted."""
        now = self._clock()
        left, at = self._left.get(who, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        if left < cost:
            return (cost - left) / self._rate
        if len(self._left) > 10_000:  # forget callers who are gone
            self._left.clear()
        self._left[who] = (left - cost, now)
        return 0.0
