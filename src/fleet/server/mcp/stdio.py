"""The tools without a server: the operations themselves, on the store of this home."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.app import App
from fleet.client import LocalClient
from fleet.operations.team.members import BeSeen
from fleet.server.mcp.protocol import answer
from fleet.server.mcp.tool_steps import ToolCaller
from fleet.server.mcp.tools import run_tool

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from fleet.domain.access import Actor
    from fleet.operations.catalogue import Operation
    from fleet.server.mcp.tools import ToolReply


class LocalTools:
    """Answers MCP messages; make and use it in one thread, because its store belongs to that."""

    def __init__(self) -> None:
        app = App(Path.cwd(), os.environ)
        self._client = LocalClient(app)
        self._directory = str(app.loaded.project or app.cwd)
        self._actor = app.actor
        self._seen = bool(self._actor.run)  # a run is known as its task's agent

    def answer(self, request: Mapping[str, Any]) -> bytes:
        """Return the response to a message; empty for one that needs none."""
        return _finished(answer(request, self._actor, self._call))

    async def _call(self, actor: Actor, name: str, given: Mapping[str, Any]) -> ToolReply:
        return await run_tool(self._perform, ToolCaller(actor, self._directory), name, given)

    async def _perform(self, _operation: Operation, _actor: Actor, request: Any) -> Any:
        if not self._seen:
            self._seen = True
            self._client.call(BeSeen())
        return self._client.call(request)


def _finished(run: Coroutine[Any, Any, bytes]) -> bytes:
    """Run a coroutine that never waits, without loading an event loop; return its result."""
    try:
        run.send(None)
    except StopIteration as done:
        reply: bytes = done.value
        return reply
    raise RuntimeError("It waited.")
