"""The relay's HTTP application: the requests that it takes, and its status."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from aiohttp import web

from fleet.adapters.relay import clock
from fleet.adapters.relay.connections import Connections
from fleet.adapters.relay.forward import Forward, begun_trace
from fleet.adapters.relay.line import Line
from fleet.adapters.relay.reply import ClientGone, Reply
from fleet.adapters.relay.request import LARGE, decode, read_request
from fleet.adapters.relay.small_requests import SmallRequests
from fleet.adapters.relay.trace_log import TraceLog
from fleet.adapters.relay.watch import Watch
from fleet.adapters.relay.wires import SMALL_REQUESTS, WIRES, Wire
from fleet.adapters.relay.world import World
from fleet.domain.nodes.kinds import OPENAI

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.adapters.relay.plan import Plan
    from fleet.adapters.relay.request import ModelRequest

LARGEST = 256 << 20  # bytes of a request, which may contain pictures
LOCAL = {"127.0.0.1", "localhost", "::1"}
PLAIN = Wire("plain", OPENAI)
T = TypeVar("T")


class Relay:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.world = World()
        self.line = Line(self.world)
        self.active: set[asyncio.Task[Any]] = set()
        self.config_at = 0  # when its file was written, in nanoseconds; 0: it has none
        self._since = time.time()
        self._served = 0
        self._closing = False
        self._large = asyncio.Semaphore(1)  # one large body at a time: each takes much memory
        self.traces = TraceLog(None)
        self.connections: Connections
        self._watch: asyncio.Task[None]

    async def open(self) -> None:
        self.connections = Connections(self.plan.settings)
        self.adopt(self.plan)
        self._watch = asyncio.create_task(Watch(self.world, self.line, self.connections).run())

    async def close(self) -> None:
        self._watch.cancel()
        self.traces.flush()
        await self.connections.close()

    def adopt(self, plan: Plan) -> None:
        """Requests at a node go on; requests that wait follow the new plan."""
        self.plan = plan
        self.connections.settings = plan.settings
        self.line.priorities = plan.settings.priorities
        self.line.limits = plan.settings.limits
        path = Path(plan.settings.traces) if plan.settings.traces else None
        if path != self.traces.path:
            self.traces.flush()
            self.traces = TraceLog(path)
        self.world.adopt(plan.fleet, plan.settings.speeds)
        self.line.move()

    async def drain(self, grace: float) -> None:
        """Wait for the requests in progress, for at most `grace` seconds."""
        self._closing = True
        if self.active:
            await asyncio.wait(self.active, timeout=grace)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST, middlewares=[self._guard])
        app.router.add_get("/relay/health", self._health)
        app.router.add_get("/relay/status", self._status)
        app.router.add_route("*", "/m/{rest:.+}", self._model)
        app.router.add_route("*", "/a/{agent}/m/{rest:.+}", self._model)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """A page in a browser must not reach the nodes through the relay."""
        host = request.host.rsplit(":", 1)[0].strip("[]")
        if host not in LOCAL | {self.plan.settings.host} or "origin" in request.headers:
            return _error(403, "The relay answers programs on this machine only.")
        return await handler(request)  # type: ignore[no-any-return]  # aiohttp says Any

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({"ok": not self._closing, "config_at": self.config_at})

    async def _status(self, _request: web.Request) -> web.Response:
        models, waiting_at = self.line.counts()
        nodes = self.world.status()
        for name, node in nodes.items():
            node["waiting"] = waiting_at[name]
        status = {"since": int(self._since * 1e6), "served": self._served, "nodes": nodes}
        return web.json_response(status | {"waiting": dict(models), "active": len(self.active)})

    async def _model(self, request: web.Request) -> web.StreamResponse:
        agent, model, path = _address(request.raw_path)
        wire = WIRES.get(path) or SMALL_REQUESTS.get(path)
        if wire is None:
            return _error(404, f"The relay does not know {path}.")
        if model not in self.world.models:
            known = ", ".join(sorted(self.world.models)) or "none"
            return _error(404, f"There is no model '{model}'. Models: {known}.", wire)
        if self._closing:
            return _error(503, "The relay is stopping.", wire, {"retry-after": "2"})
        raw = await request.read()
        size = len(raw)
        async with self._large if size > LARGE else nullcontext():
            body = await self._beside(size, _object, raw)
            del raw
            if body is None:
                return _error(400, "The request is not a JSON object.", wire)
            model_request = await self._beside(
                size, read_request, model, path, wire, body, request.headers, agent, size
            )
        task = asyncio.current_task()
        assert task is not None
        self.active.add(task)
        try:
            if path in SMALL_REQUESTS:
                return await SmallRequests(self.world, self.connections).answer(
                    model_request, request
                )
            return await self._forward(request, model_request)
        finally:
            self.active.discard(task)

    async def _beside(self, size: int, act: Callable[..., T], *values: Any) -> T:
        """A large body must not keep the others waiting."""
        return await asyncio.to_thread(act, *values) if size > LARGE else act(*values)

    async def _forward(
        self, request: web.Request, model_request: ModelRequest
    ) -> web.StreamResponse:
        began = clock.now()
        reply = Reply(request, model_request, self.plan.settings.heartbeat)
        model = self.world.models[model_request.model].name
        project = model_request.project or self.plan.settings.project_of(model)
        trace = begun_trace(model_request, project)
        self._served += 1
        try:
            forward = Forward(
                self.world, self.line, self.connections, model_request, reply, trace, began
            )
            return await forward.answer()
        except (asyncio.CancelledError, ClientGone):
            trace.outcome, trace.status = "cancelled", reply.status
            raise asyncio.CancelledError from None
        finally:
            await reply.quiet()
            trace.times = trace.times._replace(total=clock.now() - began)
            self.traces.add(trace)
            await reply.hang_up()


def _address(raw: str) -> tuple[str, str, str]:
    """Agent, model and the node's path, from `[/a/AGENT]/m/MODEL/PATH`."""
    parts = raw.partition("?")[0].split("/")[1:]
    agent = ""
    if parts[0] == "a":
        agent, parts = parts[1], parts[2:]
    return unquote(agent), unquote(parts[1]), "/" + "/".join(parts[2:])


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        body = decode(raw) if raw else {}
    except (ValueError, RecursionError):  # the second: thousands of nested brackets
        return None
    return body if isinstance(body, dict) else None


def _error(
    status: int, message: str, wire: Wire = PLAIN, headers: dict[str, str] | None = None
) -> web.Response:
    return web.json_response(wire.error(message, status), status=status, headers=headers)
