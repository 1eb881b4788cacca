"""`/mcp`: the tools over streamable HTTP, without sessions: each request has its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from fleet.server.http.codec import encode, json_of
from fleet.server.http.problem import TYPE, problem
from fleet.server.mcp.protocol import (
    BAD_JSON,
    BAD_REQUEST,
    VERSIONS,
    answer,
    failure,
    is_message,
)
from fleet.server.mcp.tool_steps import ToolCaller
from fleet.server.mcp.tools import run_tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from fleet.domain.access import Actor
    from fleet.server.mcp.tools import Perform, ToolReply

JSON = "application/json"


class Mcp:
    """`directory` is where an agent works when the call names none.

    `failed` is called with the name of a tool that did not work, and the code of its error.
    """

    def __init__(
        self,
        who: Callable[[Request], Awaitable[Actor]],
        perform: Perform,
        directory: str,
        failed: Callable[[str, str], None] = lambda _name, _code: None,
    ) -> None:
        self._who, self._perform, self._directory, self._failed = who, perform, directory, failed

    async def __call__(self, request: Request) -> Response:
        actor = await self._who(request)
        if request.method != "POST":
            return _no_stream()
        version = request.headers.get("mcp-protocol-version", VERSIONS[0])
        if version not in VERSIONS:
            known = ", ".join(VERSIONS)
            message = f"This server does not speak MCP {version[:30]}, but {known}."
            return Response(failure(None, BAD_REQUEST, message), 400, media_type=JSON)
        try:
            message = json_of(await request.body())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            error = failure(None, BAD_JSON, "The body is not JSON.")
            return Response(error, 400, media_type=JSON)
        reply = await answer(message, actor, self.call)
        if not reply:
            return Response(status_code=202)
        return Response(reply, 200 if is_message(message) else 400, media_type=JSON)

    async def call(self, actor: Actor, name: str, given: Mapping[str, Any]) -> ToolReply:
        reply = await run_tool(self._perform, ToolCaller(actor, self._directory), name, given)
        if reply.failed and reply.data:
            self._failed(name, reply.data["code"])
        return reply


def _no_stream() -> Response:
    """Refuse GET: this server sends no messages of its own, and an idle stream delays its end."""
    body = problem(
        405,
        "no_such_method",
        "This server sends no messages of its own.",
        fix="Use POST.",
    )
    return Response(encode(body), 405, {"Allow": "POST"}, TYPE)
