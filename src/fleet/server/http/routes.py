"""Which handler a path leads to, and what is said when that fails."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse
from starlette.routing import Match, Route, Router

from fleet.base.machine import is_out_of_files
from fleet.domain.errors import FleetError
from fleet.server.http.guard import BadBody
from fleet.server.http.problem import TYPE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from starlette.responses import Response
    from starlette.routing import BaseRoute
    from starlette.types import Lifespan, Message, Receive, Scope, Send


PACKED_FROM = 1024  # bytes of an answer that is worth compressing
ASIDE_FROM = 1 << 16  # bytes whose compression would keep others waiting
QUICK = 1  # of gzip's levels: rows shrink to a seventh at a third of the time
JSONS = frozenset({"application/json", TYPE})
_NONE = re.compile(rb"q=0(\.0*)?")
CALLER_ERRORS = (HTTPException, FleetError, BadBody)  # it was their doing, not ours


class HttpRoutes(Router):
    """Looks paths up: those without parameters by name, others by their first part.

    Starlette tries its routes one by one, which takes longer than answering; and it wraps each
    handler several times in what is done here once. `failed` makes the response to an error.
    """

    def __init__(
        self,
        routes: Sequence[BaseRoute],
        lifespan: Lifespan[Any],
        failed: Callable[[Exception], Response],
    ) -> None:
        super().__init__(routes, redirect_slashes=False, lifespan=lifespan)
        plain: dict[str, list[BaseRoute]] = defaultdict(list)
        others: dict[str, list[BaseRoute]] = defaultdict(list)
        for route in routes:
            path = getattr(route, "path", "")
            same = others[_first(path)] if "{" in path else plain[path]
            same.append(route)
        self._plain, self._others = dict(plain), dict(others)
        self._failed = failed

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.lifespan(scope, receive, send)
            return
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        scope["app"] = self  # with it, routes raise what is wrong
        try:
            await self._dispatch(scope, receive, noting)
        except ClientDisconnect:
            return
        except Exception as error:
            if scope["type"] == "http" and not begun:
                await self._failed(error)(scope, receive, send)
            if not isinstance(error, CALLER_ERRORS) and not is_out_of_files(error):
                raise

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, methods = scope["path"], set[str]()
        for route in self._plain.get(path, ()):  # of these, only the method is left to look at
            if isinstance(route, Route) and scope.get("method") in (route.methods or ()):
                scope["path_params"] = {}
                await route.app(scope, receive, send)
                return
        for route in self._near(path):
            match, child = route.matches(scope)
            if match is Match.FULL:
                scope.update(child)
                await route.handle(scope, receive, send)
                return
            if match is Match.PARTIAL and isinstance(route, Route):
                methods |= route.methods or set()
        if methods:  # there, but not for this method
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})
        if scope["type"] == "http" and path.endswith("/") and self._is_known(path.rstrip("/")):
            await _moved(scope)(scope, receive, send)
            return
        await self.default(scope, receive, send)

    def _is_known(self, path: str) -> bool:
        scope = {"type": "http", "path": path, "method": "GET"}
        return any(route.matches(scope)[0] is not Match.NONE for route in self._near(path))

    def _near(self, path: str) -> Iterator[BaseRoute]:
        yield from self._plain.get(path, ())
        yield from self._others.get(_first(path), ())


class Answered:
    """Runs a handler whose response is complete; compresses large JSON if the client accepts it."""

    def __init__(self, handle: Callable[[Request], Awaitable[Response]]) -> None:
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._handle(Request(scope, receive))
        if len(answer.body) > PACKED_FROM and answer.media_type in JSONS:
            await _pack(scope, answer)
        await answer(scope, receive, send)


async def _pack(scope: Scope, answer: Response) -> None:
    answer.headers.add_vary_header("accept-encoding")
    if not accepts_gzip(scope):
        return
    body = bytes(answer.body)
    if len(body) > ASIDE_FROM:
        answer.body = await asyncio.to_thread(gzip.compress, body, QUICK)
    else:
        answer.body = gzip.compress(body, QUICK)
    answer.headers["content-encoding"] = "gzip"
    answer.headers["content-length"] = str(len(answer.body))


def accepts_gzip(scope: Scope) -> bool:
    """`gzip;q=0` refuses it."""
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            for part in value.lower().split(b","):
                coding, _, weight = part.partition(b";")
                if coding.strip() == b"gzip":
                    return not _NONE.fullmatch(weight.strip())
    return False


def _moved(scope: Scope) -> Response:
    """Redirect to the path without its trailing slash, keeping method, body and query (308)."""
    query = scope["query_string"].decode("latin-1")
    path = scope["path"].rstrip("/")
    return RedirectResponse(f"{quote(path)}?{query}" if query else quote(path), 308)


def _first(path: str) -> str:
    return path[1:].partition("/")[0]
