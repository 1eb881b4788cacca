"""The HTTP face of the operations. Nothing is decided here."""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from fleet import __version__
from fleet.base.machine import is_out_of_files
from fleet.domain.access import Actor, Permission, allow
from fleet.domain.errors import FleetError, Forbidden, Unavailable
from fleet.domain.limits.check import check
from fleet.operations.catalogue import find, perform
from fleet.operations.compute.joining import CreateHostToken, HostToken
from fleet.operations.messages.alerts import RaiseAlert
from fleet.operations.shared.elsewhere import ELSEWHERE
from fleet.operations.tasks.list import ListTasks
from fleet.operations.tasks.transcript import AttachRun, Seat
from fleet.operations.team.enrolments import AUTH, SERVER
from fleet.operations.team.members import BeSeen
from fleet.operations.team.sessions import valid_code
from fleet.server.audit import admitted
from fleet.server.http.codec import (
    encode,
    from_query,
    location_of,
    methods_of,
    object_of,
    outside,
    path_of,
    query_types,
    request_of,
    spoken,
    status_of_done,
)
from fleet.server.http.connections import GUEST
from fleet.server.http.dashboard import Dashboard, Screens, html
from fleet.server.http.docs_page import page
from fleet.server.http.guard import (
    REQUEST_SECONDS,
    BadBody,
    Guard,
    Rates,
    body_of_stranger,
    client_address,
    cost_of,
    refused_body,
)
from fleet.server.http.hooks import ForgeHooks, HookRules
from fleet.server.http.idempotency import key_of
from fleet.server.http.offered_places import OfferedPlaces
from fleet.server.http.openapi import document
from fleet.server.http.pages import check_limit, cut, is_list, link_to, one_more
from fleet.server.http.problem import TYPE, problem, refusal
from fleet.server.http.routes import Answered, HttpRoutes
from fleet.server.http.wrong_secrets import Guesses
from fleet.server.live.links import Links
from fleet.server.live.presence import EndedRuns, PresenceNotes
from fleet.server.live.seats import Seats
from fleet.server.live.sockets import AUTH_SECONDS, Sockets
from fleet.server.live.sse import EventStream
from fleet.server.mcp.http import Mcp
from fleet.server.own_metrics import server_figures
from fleet.server.prometheus import as_rows, exposition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request

    from fleet.operations.catalogue import Context, Operation
    from fleet.ports import Hosts, SeatedAt, Store
    from fleet.server.audit import Audit
    from fleet.server.http.compat import Compat
    from fleet.server.live.presence import Revoked
    from fleet.server.live.stream import Streams
    from fleet.server.metrics import EventWatch, Meters
    from fleet.server.prometheus import Metric
    from fleet.server.read_queue import Reads
    from fleet.server.ready import Readiness
    from fleet.server.task_folders import Folders
    from fleet.server.tokens import TokenCheck, TokenGrant
    from fleet.server.writer import Writer

    Handler = Callable[[Request], Awaitable[Response]]

JSON = "application/json"
FILES = frozenset(
    {"land.output", "run.said", "run.transcript", "search.find"}
)  # what reads files, too, however large they are
TOKENS = "tokens"  # for every caller: whose a token is must be known first
STATE = 100  # tasks with which a reader of events begins
RATE, BURST = 200.0, 2000.0  # of one token: a fleet of agents lives with that


@dataclass
class Server:
    """`context` is copied for each request, with the caller as its actor."""

    context: Context
    reads: Reads
    writer: Writer
    tokens: TokenCheck
    revoked: Revoked
    streams: Streams
    rates: Rates
    hosts: frozenset[str]
    hosts_do: Hosts
    meters: Meters
    watch: EventWatch
    audit: Audit
    readiness: Readiness
    compat: Compat
    folders: Folders
    hook_rules: HookRules
    seat: Callable[[Sequence[str], tuple[int, int]], SeatedAt]  # opens the terminal of a command
    directory: str = ""  # where an agent works when the call names none
    places: tuple[str, ...] = ()  # other directories in which every team may have agents work
    relay: Callable[[], Mapping[str, Mapping[str, Any]]] = dict  # the relay's status of each node
    presence: PresenceNotes = field(default_factory=PresenceNotes)
    guesses: Guesses = field(default_factory=Guesses)
    dashboard: Dashboard = field(default_factory=Dashboard)
    persistence: str = "sqlite"
    connections: Callable[[], int] = int  # how many are open
    patience: float = REQUEST_SECONDS  # seconds for a client to send its request
    _look: asyncio.Future[Mapping[str, Mapping[str, Any]]] | None = None  # the request to the relay

    def app(self) -> Guard:
        self.tokens.ended_by(EndedRuns(self.reads.store))
        self.context = self.context._replace(offers=OfferedPlaces((self.directory, *self.places)))
        self.mcp = Mcp(self.who, self.perform, self.directory, self.audit.tool_failed)
        self.links = Links(self.admit, self._new_host_token)
        self.streams.checked_by(self.tokens.check)
        self._hooks = ForgeHooks(self.hook_rules, self.guesses, self.perform)
        transcripts = self.context.transcripts
        sockets = Sockets(
            self.streams, self.admit, self.seen_by, self.reads, transcripts, self._read_for
        )
        sockets.other_topic = self.compat.topic
        sockets.patience = min(self.patience, AUTH_SECONDS)
        shell = Answered(self.dashboard.shell)
        routes = [
            Route("/health", Answered(self.health), methods=["GET"]),
            Route("/ready", Answered(self.ready), methods=["GET"]),
            Route("/metrics", Answered(self.metrics), methods=["GET"]),
            Route("/metrics/json", Answered(self.metrics_json), methods=["GET"]),
            Route("/mcp", Answered(self.mcp)),
            Route("/openapi.json", Answered(self.openapi), methods=["GET"]),
            Route("/docs", Answered(self.docs), methods=["GET"]),
            Route("/hooks/{forge}", Answered(self.hook), methods=["POST"]),
            Route("/", shell, methods=["GET"]),
            Route("/ui/{hash}/{name:path}", Answered(self.dashboard.file), methods=["GET"]),
            Route("/events", EventStream(self.streams, self.grant, self.seen_by), methods=["GET"]),
            WebSocketRoute("/ws", sockets),
            Route("/ws", sockets),
            WebSocketRoute(
                "/ws/terminal", Seats(self.admit, self.perform, self.seat, self.links.sit)
            ),
            WebSocketRoute("/ws/host", self.links),
            *(self._route(operation) for operation in spoken().values()),
            *self.compat.routes(self.who, self.perform, self.directory),
        ]
        routes_table = HttpRoutes(routes, self._lifespan, _failed)
        return Guard(Screens(routes_table, shell), hosts=self.hosts)

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        self.streams.begin(asyncio.get_running_loop())
        self.audit.alarm = self._raise_alert
        self.writer.start()
        self.folders.start()
        self.watch.start()
        self.dashboard.begin()
        await asyncio.to_thread(self.revoked.begin, self.context)  # later ones come as events
        if not self.context.actor.run:  # reserve the name of the user who runs the server
            self.writer.do(self.context, BeSeen())
        try:
            yield
        finally:
            self.let_go()
            await self.writer.stop()
            self.reads.stop()
            await asyncio.to_thread(self.watch.stop)
            await asyncio.to_thread(self.folders.stop)
            self.audit.alarm = None
            self.audit.count()

    def _raise_alert(self, text: str) -> None:
        """Post an alert as the server itself, not as the caller whose request led to it."""
        alert = RaiseAlert(text, everywhere=True)  # a coordinator of any team may mend it
        telling = self.perform(find(RaiseAlert), SERVER, alert)
        self._alerts = asyncio.create_task(
            telling, context=contextvars.Context()
        )  # kept until it is done
        self._alerts.add_done_callback(lambda done: done.cancelled() or done.exception())

    def let_go(self) -> None:
        """End the live streams and the waits for other hosts: the server is stopping."""
        self.streams.end()
        self.hosts_do.end()

    def _route(self, operation: Operation) -> Route:
        paged = is_list(operation)

        async def handle(request: Request) -> Response:
            if operation.is_open:
                return await self._open(operation, request)
            actor = await self.who(request)
            body = request_of(operation, await _fields(operation, request))
            if paged:
                return await self._page(operation, actor, body, request)
            reply = await self.perform(operation, actor, body, key_of(request))
            return _done(operation, reply)

        return Route(path_of(operation), Answered(handle), methods=methods_of(operation))

    async def _open(self, operation: Operation, request: Request) -> Response:
        """Perform an operation that needs no token, such as joining with a code.

        The code is checked with a read first, so wrong guesses do not occupy the writer.
        """
        body: Any = request_of(operation, object_of(await body_of_stranger(request)))
        check(body)
        address = client_address(request.scope)
        try:
            await self.reads.do(f"stranger {address}", lambda store: valid_code(store, body.code))
            return _done(operation, await self.perform(operation, AUTH, body))
        except Forbidden as error:
            if error.code == "bad_secret":
                await self.guesses.slow_down(address)
            raise

    async def _page(
        self, operation: Operation, actor: Actor, body: Any, request: Request
    ) -> Response:
        rows, cursor = cut(await self.perform(operation, actor, one_more(body)), body.limit)
        answer = _json(200, _envelope(operation, rows) | {"next": cursor})
        if cursor and request.method != "POST":
            answer.headers["link"] = link_to(request, cursor)
        return answer

    async def perform(self, operation: Operation, actor: Actor, request: Any, key: str = "") -> Any:
        """Carry out an operation if the actor may, and record the request in the audit trail."""
        try:
            reply = await self._perform_there(operation, actor, request, key)
        except BaseException as error:
            self.audit.failed(operation, actor, request, error)
            self.readiness.failed(error)
            raise
        if not operation.is_read:
            self.readiness.worked()
        self.audit.did(operation, actor, request, reply)
        return reply

    async def _new_host_token(self, grant: TokenGrant) -> str:
        """Return a new token for a host; empty while the old one has over half of its life left."""
        actor = replace(SERVER, team=grant.actor.team)
        wish = CreateHostToken(grant.host, grant.id)
        made: HostToken = await self.perform(find(CreateHostToken), actor, wish)
        return made.token

    async def _read_for(self, operation: Operation, actor: Actor, request: Any) -> Any:
        """Carry out a read for a client that watches, without a record in the audit trail."""
        return await self._perform_there(operation, actor, request, "")

    async def _perform_there(
        self, operation: Operation, actor: Actor, request: Any, key: str
    ) -> Any:
        """Carry out an operation here; pass a read of what only a linked host has to that host."""
        try:
            return await self._perform(operation, actor, request, key)
        except Unavailable as error:
            about = {name: str(value) for name, value in error.about.items()}
            host = about.get("host", "")
            if error.code != ELSEWHERE or not self.links.has(host):
                raise
            if operation.request is AttachRun:
                return Seat(about["run"], about["task"], (), host)
            if not operation.is_read:
                raise
        return await self.links.ask(host, operation, actor, request)

    async def _perform(self, operation: Operation, actor: Actor, request: Any, key: str) -> Any:
        if not actor.remote:  # no caller of a server counts as the user at its machine
            actor = replace(actor, remote=True)
        context = self.context._replace(actor=actor)
        allow(actor, operation.permission)
        if operation.is_read and not operation.outside:
            return await self.reads.do(
                f"{actor.team}/{actor.name}",
                lambda store: perform(context._replace(store=store), request),
                kind=operation.name,
                beside=operation.name in FILES,
            )
        if operation.outside:
            return await asyncio.wrap_future(self.hosts_do.do(actor, request, key))
        reply = await self.writer.do(context, request, key)
        if operation.at_host:
            await asyncio.wrap_future(self.hosts_do(actor, str(getattr(reply, "id", ""))))
        return reply

    async def who(self, request: Request) -> Actor:
        return (await self.grant(request))[1].actor

    async def grant(self, request: Request) -> tuple[str, TokenGrant]:
        """Return the request's bearer token and what it grants; raise `Forbidden` without one."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Forbidden(
                "No token was sent.",
                fix="Send `Authorization: Bearer TOKEN`; `fleet token create` makes one.",
                code="no_token",
            )
        grant = await self.admit(token.strip(), cost_of(request.headers))
        guest = request.scope.get("state", {}).get(GUEST)
        if guest is not None:
            guest.prove()
        return token.strip(), grant

    async def admit(self, token: str, cost: int = 1) -> TokenGrant:
        if self.reads.near is not None:
            grant = self.tokens.check(token)
        else:
            grant = await self.reads.do(TOKENS, lambda _: self.tokens.check(token))
        admitted(grant)
        if rest := self.rates.wait(grant.budget or grant.id, cost):
            raise HTTPException(429, headers={"Retry-After": str(int(rest) + 1)})
        self.presence.note(self.context, grant, self.writer)
        return grant

    def seen_by(self, store: Store, actor: Actor) -> dict[str, Any]:
        """The state that events change: tasks neither done nor cancelled, newest first, one page."""
        context = self.context._replace(actor=actor, store=store)
        tasks = perform(context, ListTasks(limit=STATE))
        return {"tasks": outside(tasks, find(ListTasks).reply)}

    async def hook(self, request: Request) -> Response:
        return _json(200, {"fleet": 1, "kind": "hook", "data": await self._hooks(request)})

    async def health(self, _request: Request) -> Response:
        """Reply 200 with what is known; nothing is counted or tried, so it takes constant time."""
        problems = self.readiness.known(self.watch.looked, self.watch.trouble)
        totals = self.meters.totals
        body = {
            "status": "degraded" if problems else "ok",
            "version": __version__,
            "persistence": self.persistence,
            "agents": totals.members,
            "chats": totals.chats,
            "messages": totals.messages,
            "workers": totals.live_runs,
            "streams": len(self.streams),
        }
        return _json(200, body | ({"problems": problems} if problems else {}))

    async def ready(self, _request: Request) -> Response:
        problems = await self.readiness.problems()
        if problems:
            detail = " ".join(problems.values())
            body = problem(503, "not_ready", detail, more={"problems": problems})
            return _json(503, body, TYPE)
        return _json(200, {"status": "ready"})

    async def metrics(self, _request: Request) -> Response:
        text = exposition(await self._measured())
        return Response(text, media_type="text/plain; version=0.0.4")

    async def metrics_json(self, request: Request) -> Response:
        allow(await self.who(request), Permission.READ)
        return _json(200, {"fleet": 1, "kind": "metrics", "data": as_rows(await self._measured())})

    async def _measured(self) -> tuple[Metric, ...]:
        fleet = self.context.world(self.context.project).fleet
        relay = await self._relay_says() if fleet.nodes else {}
        own = server_figures(
            refusals=self.audit.refusals,
            dropped=self.audit.dropped,
            connections=self.connections(),
            streams=self.streams.counts(),
            busiest=self.streams.busiest,
            writing=len(self.writer),
        )
        read = await self.reads.do("", lambda store: self.meters.read(store, fleet, relay))
        return (*read, *own)

    async def _relay_says(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the relay's status. Concurrent callers, who need no token, share one request."""
        if self._look is None or self._look.done():
            self._look = asyncio.ensure_future(asyncio.to_thread(self.relay))
        return await asyncio.shield(self._look)

    async def openapi(self, _request: Request) -> Response:
        text = await asyncio.to_thread(document, self.compat)  # the first time takes a while
        return Response(text, media_type=JSON)

    async def docs(self, request: Request) -> Response:
        return html(request, page(self.compat))


async def _fields(operation: Operation, request: Request) -> dict[str, Any]:
    if request.method in {"GET", "HEAD"}:
        fields = from_query(query_types(operation.request), request.query_params)
    else:
        fields = object_of(await request.body())
    check_limit(operation, fields)
    return fields


def _envelope(operation: Operation, reply: Any) -> dict[str, Any]:
    return {"fleet": 1, "kind": operation.name, "data": outside(reply, operation.reply)}


def _done(operation: Operation, reply: Any) -> Response:
    """Return the reply; `Location` is the path that shows what the operation created."""
    answer = _json(status_of_done(operation), _envelope(operation, reply))
    if operation.shown_by:
        answer.headers["location"] = f"{location_of(operation)}{quote(reply.id, safe='')}"
    return answer


def _json(status: int, data: Any, kind: str = JSON) -> Response:
    return Response(encode(data), status_code=status, media_type=kind)


def _failed(error: Exception) -> Response:
    if isinstance(error, FleetError):
        return refusal(error)
    if isinstance(error, BadBody):
        return refused_body(error)
    if is_out_of_files(error):
        body = problem(503, "too_many_files", "The server has too many files open.")
        return _json(503, body, TYPE)
    if not isinstance(error, HTTPException):
        body = problem(500, "bug", f"This is a bug in fleet ({type(error).__name__}).")
        return _json(500, body, TYPE)
    codes = {404: "no_such_path", 405: "no_such_method", 429: "too_many_requests"}
    code = codes.get(error.status_code, "error")
    body = problem(error.status_code, code, error.detail)
    answer = _json(error.status_code, body, TYPE)
    answer.headers.update(error.headers or {})
    return answer
