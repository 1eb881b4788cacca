"""The part of `/mcp` that needs the SDK, which costs half a second and 35 MB to load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from fleet import __version__
from fleet.domain.errors import FleetError
from fleet.server.http.codec import ENCODER
from fleet.server.mcp.http import ACTOR
from fleet.server.mcp.tools import shown_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from fleet.domain.access import Actor

    Call = Callable[[Actor, str, Mapping[str, Any]], Awaitable[Any]]

ABOUT = "Coordinate with the other agents and the people of your team."


def manager(call: Call) -> StreamableHTTPSessionManager:
    async def list_tools(context: Any, _params: Any) -> types.ListToolsResult:
        shown = shown_to(context.request.scope[ACTOR])
        return types.ListToolsResult(
            tools=[
                types.Tool(name=t.name, description=t.about, input_schema=t.schema()) for t in shown
            ]
        )

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        actor = context.request.scope[ACTOR]
        try:
            reply = await call(actor, params.name, params.arguments or {})
        except FleetError as error:
            said = f"{error.message} {error.fix}".strip()
            return _result({"code": error.code, "message": error.message}, said, failed=True)
        text = ENCODER.encode(reply).decode()
        return _result(None, text)

    server: Server[Any] = Server(
        "fleet",
        version=__version__,
        instructions=ABOUT,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True)


def _result(data: Any, text: str, *, failed: bool = False) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=data, is_error=failed)
