"""The tools without a server: the operations themselves, on the store of this home.

Only what MCP needs for tools is spoken, without the SDK, which would cost every agent half a second
and 35 MB.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet import __version__
from fleet.app import App
from fleet.client import LocalClient
from fleet.operations.team.members import BeSeen
from fleet.server.http.codec import ENCODER
from fleet.server.mcp.tool_steps import Who
from fleet.server.mcp.tools import ABOUT, run_tool, shown_to

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from fleet.domain.access import Actor
    from fleet.operations.catalogue import Operation
    from fleet.server.mcp.tools import ToolReply

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # newest first
NO_METHOD, BAD_PARAMS = -32601, -32602


class Here:
    """To be made and used in one thread: the store is that thread's."""

    def __init__(self) -> None:
        app = App(Path.cwd(), os.environ)
        self._client = LocalClient(app)
        self._directory = str(app.loaded.project or app.cwd)
        self._actor = app.actor
        self._seen = bool(self._actor.run)  # a run is known as its task's agent

    def answer(self, request: Mapping[str, Any]) -> bytes:
        """Nothing for what wants no answer."""
        if "id" not in request:
            return b""
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        given = request.get("params") or {}
        if not isinstance(given, dict):
            return _encoded(reply | _error(BAD_PARAMS, "The parameters are not a JSON object."))
        match request.get("method"):
            case "initialize":
                result: dict[str, Any] = _greeting(str(given.get("protocolVersion", "")))
            case "ping":
                result = {}
            case "tools/list":
                result = {"tools": [_described(tool) for tool in shown_to(self._actor)]}
            case "tools/call":
                result = self._called(str(given.get("name", "")), given.get("arguments") or {})
            case method:
                return _encoded(reply | _error(NO_METHOD, f"There is no method '{method}'."))
        return _encoded(reply | {"result": result})

    def _called(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        who = Who(self._actor, self._directory)
        text, data, failed = _finished(run_tool(self._perform, who, name, given))
        result = {"content": [{"type": "text", "text": text}], "isError": failed}
        return result if data is None else {**result, "structuredContent": data}

    async def _perform(self, _operation: Operation, _actor: Actor, request: Any) -> Any:
        if not self._seen:
            self._seen = True
            self._client.call(BeSeen())
        return self._client.call(request)


def _finished(run: Coroutine[Any, Any, ToolReply]) -> ToolReply:
    """What it returns, of a coroutine that never waits: no event loop has to be loaded for it."""
    try:
        run.send(None)
    except StopIteration as done:
        reply: ToolReply = done.value
        return reply
    raise RuntimeError("It waited.")


def _greeting(wanted: str) -> dict[str, Any]:
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "fleet", "version": __version__},
        "instructions": ABOUT,
    }


def _described(tool: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.about, "inputSchema": tool.schema()}


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def _encoded(message: Mapping[str, Any]) -> bytes:
    return ENCODER.encode(message)
