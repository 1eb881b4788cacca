"""The part of `/mcp` that needs the SDK, which costs half a second and 35 MB to load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from fleet import __version__
from fleet.server.mcp.http import ACTOR
from fleet.server.mcp.tools import ABOUT, shown_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from fleet.domain.access import Actor
    from fleet.server.mcp.tools import ToolReply

    Call = Callable[[Actor, str, Mapping[str, Any]], Awaitable[ToolReply]]


def manager(call: Call) -> StreamableHTTPSessionManager:
    async def list_tools(context: Any, _params: Any) -> types.ListToolsResult:
        tools = shown_to(context.request.scope[ACTOR])
        return types.ListToolsResult(
            tools=[
                types.Tool(name=t.name, description=t.about, input_schema=t.schema()) for t in tools
            ]
        )

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        actor = context.request.scope[ACTOR]
        reply = await call(actor, params.name, params.arguments or {})
        content: list[Any] = [types.TextContent(type="text", text=reply.text)]
        return types.CallToolResult(
            content=content, structured_content=reply.data, is_error=reply.failed
        )

    server: Server[Any] = Server(
        "fleet",
        version=__version__,
        instructions=ABOUT,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True)
