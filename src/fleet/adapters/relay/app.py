"""The relay's HTTP application: the requests that it takes, and its status."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aiohttp import web

from fleet.adapters.relay import clock
from fleet.adapters.relay.bodies import LARGEST, RequestBodies
from fleet.adapters.relay.connections import Connections
from fleet.adapters.relay.forward import Forward, begun_trace
from fleet.adapters.relay.line import WaitingLine
from fleet.adapters.relay.reply import ClientGone, RelayReply
from fleet.adapters.relay.request import LARGE, beside, decode, read_request, unread
from fleet.adapters.relay.small_requests import SmallRequests
from fleet.adapters.relay.trace_log import TraceLog
from fleet.adapters.relay.watch import NodeWatch
from fleet.adapters.relay.wires import SMALL_REQUESTS, WIRES, RelayWire
from fleet.adapters.relay.world import RelayWorld
from fleet.domain.nodes.kinds import OPENAI

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.adapters.relay.bodies import HeldBody
    from fleet.adapters.relay.plan import RelayPlan
    from fleet.adapters.relay.request import ModelRequest

LOCAL = {"127.0.0.1", "localhost", "::1"}
PLAIN = RelayWire("plain", OPENAI)


class Relay:
    def __init__(self, plan: RelayPlan) -> None:
        self.plan = plan
        self.world = RelayWorld()
        self.line = WaitingLine(self.world)
        self.active: set[asyncio.Task[Any]] = set()
        self.config_at = 0  # when its file was written, in nanoseconds; 0: it has none
        self._since = time.time()
        self._served = 0
        self._closing = False
        self.bodies = RequestBodies()
        self._parsing = asyncio.Lock()  # one large body at a time: as objects it takes much memory
        self.traces = TraceLog(None)
        self.connections: Connections
        self._watch: asyncio.Task[None]

    async def open(self) -> None:
        self.connections = Connections(self.plan.settings)
        self.adopt(self.plan)
        self._watch = asyncio.create_task(NodeWatch(self.world, self.line, self.connections).run())

    async def close(self) -> None:
        self._watch.cancel()
        self.traces.flush()
        await self.connections.close()

    def adopt(self, plan: RelayPlan) -> None:
        """Use a new plan: for waiting requests too, but not for those that a node is answering."""
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
        app.router.add_get("/relay/unwritten", self._unwritten)
        app.router.add_route("*", "/m/{rest:.+}", self._model)
        app.router.add_route("*", "/a/{agent}/m/{rest:.+}", self._model)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Refuse requests from pages in a browser, which must not reach the nodes."""
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
        bodies = {"reserved": self.bodies.reserved, "waiting": self.bodies.waiting}
        status |= {"waiting": dict(models), "active": len(self.active), "large_bodies": bodies}
        return web.json_response(status)

    async def _unwritten(self, request: web.Request) -> web.Response:
        """Reply with the run's newest trace that could not be written to a file yet."""
        run, agent = request.query.get("run", ""), request.query.get("agent", "")
        return web.Response(body=self.traces.unwritten(run, agent))

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
        async with self.bodies.of(request) as request_body:
            async with self._parsing if len(request_body.raw) > LARGE else nullcontext():
                model_request = await beside(
                    len(request_body.raw),
                    _parsed,
                    request_body.raw,
                    model,
                    path,
                    wire,
                    request.headers,
                    agent,
                )
            if model_request is None:
                return _error(400, "The request is not a JSON object.", wire)
            return await self._answer(request, model_request, request_body)

    async def _answer(
        self, request: web.Request, model_request: ModelRequest, request_body: HeldBody
    ) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self.active.add(task)
        try:
            if model_request.path in SMALL_REQUESTS:
                return await SmallRequests(self.world, self.connections).answer(
                    model_request, request
                )
            return await self._forward(request, model_request, request_body)
        finally:
            self.active.discard(task)

    async def _forward(
        self, request: web.Request, model_request: ModelRequest, request_body: HeldBody
    ) -> web.StreamResponse:
        began = clock.now()
        reply = RelayReply(request, model_request, self.plan.settings.heartbeat)
        model = self.world.name_of(model_request.model)
        project = model_request.project or self.plan.settings.project_of(model)
        trace = begun_trace(model_request, project)
        self._served += 1
        try:
            forward = Forward(
                self.world,
                self.line,
                self.connections,
                model_request,
                reply,
                trace,
                began,
                request_body,
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


def _parsed(
    raw: bytearray,
    model: str,
    path: str,
    wire: RelayWire,
    headers: Mapping[str, str],
    agent: str,
) -> ModelRequest | None:
    """Parse the request of a client; None when its body is not a JSON object."""
    try:
        body = decode(raw) if raw else {}
    except (ValueError, RecursionError):  # the second: thousands of nested brackets
        return None
    if not isinstance(body, dict):
        return None
    request = read_request(model, path, wire, body, headers, agent, len(raw))
    return replace(request, body=unread(raw, body)) if len(raw) > LARGE else request


def _error(
    status: int, message: str, wire: RelayWire = PLAIN, headers: dict[str, str] | None = None
) -> web.Response:
    return web.json_response(wire.error(message, status), status=status, headers=headers)
