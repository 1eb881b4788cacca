"""MCP as far as tools need it, over stdio and over HTTP alike.

The SDK would cost every agent and the server half a second and 35 MB, and each call two milliseconds
of the server's processor, which is ten times what the call itself takes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from fleet import __version__
from fleet.domain.access import Actor
from fleet.server.http.codec import ENCODER
from fleet.server.mcp.reply_schemas import output_schema
from fleet.server.mcp.tools import ABOUT, shown_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from fleet.domain.access import Role
    from fleet.server.mcp.tool_table import Tool
    from fleet.server.mcp.tools import ToolReply

    Call = Callable[[Actor, str, Mapping[str, Any]], Awaitable[ToolReply]]

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # newest first
BAD_JSON, BAD_REQUEST, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602


def is_message(message: Any) -> bool:
    """Whether it is a request, a notification or a response."""
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and not message.keys().isdisjoint({"method", "result", "error"})
    )


async def answer(message: Any, actor: Actor, call: Call) -> bytes:
    """Return the JSON-RPC response to a message; empty for a notification or a response."""
    if not is_message(message):
        return failure(None, BAD_REQUEST, "A message is one JSON-RPC 2.0 object.")
    if "id" not in message or "method" not in message:
        return b""
    number, params = message["id"], message.get("params") or {}
    if not isinstance(params, dict):
        return failure(number, BAD_PARAMS, "The parameters are not a JSON object.")
    match message["method"]:
        case "initialize":
            return _success(number, _greeting(str(params.get("protocolVersion", ""))))
        case "ping":
            return _success(number, {})
        case "tools/list":
            return _success(number, _listed(actor.role, in_run=bool(actor.run)))
        case "tools/call":
            return await _called(number, params, actor, call)
        case method:
            return failure(number, NO_METHOD, f"There is no method '{str(method)[:60]}'.")


async def _called(number: Any, params: dict[str, Any], actor: Actor, call: Call) -> bytes:
    arguments = params.get("arguments") or {}
    if not isinstance(arguments, dict):
        return failure(number, BAD_PARAMS, "The arguments are not a JSON object.")
    reply = await call(actor, str(params.get("name", "")), arguments)
    content = [{"type": "text", "text": reply.text}]
    data: Any = reply.data or {"data": msgspec.Raw(reply.text.encode())}
    return _success(
        number, {"content": content, "structuredContent": data, "isError": reply.failed}
    )


def failure(number: Any, code: int, message: str) -> bytes:
    error = {"code": code, "message": message}
    return ENCODER.encode({"jsonrpc": "2.0", "id": number, "error": error})


def _success(number: Any, result: Any) -> bytes:
    return ENCODER.encode({"jsonrpc": "2.0", "id": number, "result": result})


def _greeting(version: str) -> dict[str, Any]:
    return {
        "protocolVersion": version if version in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "fleet", "title": "Fleet", "version": __version__},
        "instructions": ABOUT,
    }


@cache
def _listed(role: Role, *, in_run: bool) -> msgspec.Raw:
    tools = shown_to(Actor("", role, "", "t-0.1" if in_run else ""))
    return msgspec.Raw(ENCODER.encode({"tools": [_described(tool) for tool in tools]}))


def _described(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.about,
        "inputSchema": tool.schema(),
        "outputSchema": output_schema(tool),
        "annotations": tool.annotations(),
    }
