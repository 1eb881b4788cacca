"""Run the server until it is told to stop."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from fleet.app.server_process import noted
from fleet.base.machine import is_out_of_files, raise_file_limit
from fleet.domain.errors import Refused
from fleet.server.audit import Observed
from fleet.server.http.connections import MAX_CONNECTIONS, Door
from fleet.server.http.guard import LOOPBACK, REQUEST_SECONDS
from fleet.server.http.wire import websocket, wire
from fleet.server.make import make_server

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from fleet.app import App
    from fleet.ports import Beside

SECRET = 16  # characters: shorter secrets could be guessed from one token
GRACE = 5  # seconds for requests that are being answered
RAISE_LIMIT = "Raise the limit on open files (ulimit -n)."
WARN_SECONDS = 60.0  # between two such warnings
IDLE_SECONDS = 15  # for which an idle connection without a token is kept
BACKLOG = 2048  # connections that wait to be accepted
PING = 30.0  # seconds between pings on a WebSocket, and to wait for their pongs


class RunningServer:
    """A server that has its port once constructed, and answers requests once `run` is called."""

    def __init__(
        self,
        app: App,
        *,
        host: str,
        port: int,
        names: tuple[str, ...] = (),
        patience: float = REQUEST_SECONDS,
        ping: float = PING,
    ) -> None:
        if host not in LOOPBACK and len(os.environ.get("JWT_SECRET", "")) < SECRET:
            raise Refused(
                f"On {host} other machines could reach the server, and no secret is configured.",
                fix=f"Set JWT_SECRET to a secret of at least {SECRET} characters, or leave --host out.",
            )
        app.home.ensure()
        files = raise_file_limit()
        self._backlog = min(BACKLOG, files // 4)  # all may be accepted before one is counted
        self._home, self._host, self._ping = app.home.path, host, ping
        self._proxies = app.loaded.settings.server.trusted_proxies
        self._door = Door(min(MAX_CONNECTIONS, files // 2), self._proxies)
        self._socket = _bound(host, port, self._backlog)
        self._server = make_server(app, host=host, names=names)
        self._server.patience = patience
        quarter = max(1, self._door.most // 4)  # of the connections, that one member may keep busy
        self._server.streams.each = min(app.loaded.settings.server.streams, quarter)
        self._server.reads.most = quarter
        self._door.refused = self._server.audit.refused_at_the_door
        self._uvicorn: uvicorn.Server | None = None
        self._over = False

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def stop(self) -> None:
        """Stop serving; may be called from any thread or signal handler."""
        self._over = True
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True

    @property
    def crowded(self) -> bool:
        """Whether requests want to write; the supervisor in this process lets them go first."""
        return self._server.writer.crowded

    def heard(self) -> None:
        """Look for new events at once; the supervisor in this process calls it."""
        self._server.watch.heard()

    def run(self, say: Callable[[str], None], beside: Beside | None = None) -> None:
        app = self._server
        settings = uvicorn.Config(
            Observed(app.app(), app.meters, app.audit), log_level="error", access_log=False, server_header=False,
            proxy_headers=bool(self._proxies), forwarded_allow_ips=list(self._proxies),
            timeout_keep_alive=IDLE_SECONDS, timeout_graceful_shutdown=GRACE, ws_max_size=1 << 20,
            http=wire(app.patience, self._door), backlog=self._backlog, ws_ping_interval=self._ping, ws_ping_timeout=self._ping,
            ws_per_message_deflate=False,
            ws=websocket,  # type: ignore[arg-type]  # it is only ever called
        )  # fmt: skip
        server = self._uvicorn = _Quiet(settings, app.let_go, self._socket, say)
        self._uvicorn.should_exit = self._over
        app.connections = lambda: len(server.server_state.connections)
        app.readiness.supervised = beside is not None
        url = f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{self.port}"
        with self._socket as listening, noted(self._home, url):
            say(f"Serving on {url}. `fleet token create NAME` makes a token.")
            if beside is not None:
                beside.begin()
            try:
                self._uvicorn.run(sockets=[listening])
            finally:
                if beside is not None:
                    beside.end()


class _Quiet(uvicorn.Server):
    """Uvicorn without its signal handlers, as signals end more than the server.

    When no file descriptor is free, uvloop closes its listening socket; this class then listens
    again on a copy of it.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        ending: Callable[[], None],
        listening: socket.socket,
        warn: Callable[[str], None],
    ) -> None:
        super().__init__(config)
        self._ending, self._warn = ending, warn
        self._kept = listening.dup()
        self._is_deaf = False
        self._warned = -math.inf

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._failed)
        await super().startup(sockets)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or not is_out_of_files(error):
            loop.default_exception_handler(context)
            return
        self._is_deaf = True
        if time.monotonic() - self._warned > WARN_SECONDS:
            self._warned = time.monotonic()
            self._warn(f"Cannot accept connections: {error.strerror}. {RAISE_LIMIT}")

    async def on_tick(self, counter: int) -> bool:
        if self._is_deaf and not self.should_exit:
            with suppress(OSError):  # the next tick tries again
                await self._listen_again()
        return await super().on_tick(counter)

    async def _listen_again(self) -> None:
        copy = self._kept.dup()
        for server in self.servers:
            server.close()
        config, loop = self.config, asyncio.get_running_loop()
        shared = {"server_state": self.server_state, "app_state": self.lifespan.state}
        protocol = partial(cast("Any", config.http_protocol_class), config=config, **shared)
        self.servers = [await loop.create_server(protocol, sock=copy, backlog=config.backlog)]
        self._is_deaf = False

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()  # first: live streams would otherwise last for all of the grace period
        self._kept.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _bound(host: str, port: int, backlog: int = BACKLOG) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # named, so that asyncio sends small answers at once: 40 ms each otherwise
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise Refused(
            f"Cannot listen on port {port} of {host}: {error.strerror}.",
            fix="Choose another with --port.",
        ) from None
    listening.listen(backlog)
    return listening
