"""`/mcp`: the tools over streamable HTTP. The SDK is loaded when somebody first asks."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from fleet.domain.errors import FleetError
from fleet.server.http.codec import encode
from fleet.server.http.guard import BadBody, refused_body
from fleet.server.http.problem import TYPE, problem, refusal
from fleet.server.mcp.tool_steps import Who
from fleet.server.mcp.tools import run_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from fleet.domain.access import Actor
    from fleet.server.mcp.tools import Perform, ToolReply

    Scope = MutableMapping[str, Any]

ACTOR = "fleet.actor"
SDK = "fleet.server.mcp.sdk"


class Mcp:
    """`directory` is where an agent works when the call names none.

    `failed` is called with the name of a tool that did not work, and the code of its error.
    """

    def __init__(
        self,
        who: Callable[[Request], Actor],
        perform: Perform,
        directory: str,
        failed: Callable[[str, str], None] = lambda _name, _code: None,
    ) -> None:
        self._who, self._perform, self._directory, self._failed = who, perform, directory, failed
        self._handle: Any = None
        self._begun = asyncio.Lock()
        self._over = asyncio.Event()
        self._going: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        try:
            scope[ACTOR] = self._who(Request(scope))
            if scope["method"] != "POST":
                await _only_asked()(scope, receive, send)
                return
            handle = await self._ready()
            await handle(scope, receive, send)
        except FleetError as error:
            await refusal(error)(scope, receive, send)
        except BadBody as error:
            await refused_body(error)(scope, receive, send)

    async def call(self, actor: Actor, name: str, given: Mapping[str, Any]) -> ToolReply:
        reply = await run_tool(self._perform, Who(actor, self._directory), name, given)
        if reply.failed and reply.data:
            self._failed(name, reply.data["code"])
        return reply

    async def _ready(self) -> Any:
        async with self._begun:
            if self._handle is None:
                if self._over.is_set():
                    raise HTTPException(503)
                sdk = await asyncio.to_thread(import_module, SDK)
                ready = asyncio.Event()
                manager = sdk.manager(self.call)
                self._going = asyncio.create_task(self._run(manager, ready))
                await ready.wait()
                self._handle = manager.handle_request
        return self._handle

    async def _run(self, manager: Any, ready: asyncio.Event) -> None:
        """Begun and ended in one task, as its groups of tasks must be."""
        async with manager.run():
            ready.set()
            await self._over.wait()

    async def end(self) -> None:
        self._over.set()
        if self._going is not None:
            await self._going


def _only_asked() -> Response:
    """We begin no talk: a stream that nothing is ever said on would hold up the end of the server."""
    body = problem(
        405,
        "no_such_method",
        "This server sends no messages of its own.",
        fix="Use POST.",
    )
    return Response(encode(body), 405, {"Allow": "POST"}, TYPE)
