"""Being the server, until it is told to stop."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from fleet.app.server_process import noted
from fleet.domain.errors import Refused
from fleet.server.audit import Observed
from fleet.server.http.guard import LOOPBACK, REQUEST_SECONDS
from fleet.server.http.wire import websocket, wire
from fleet.server.make import make_server

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from fleet.app import App
    from fleet.ports import Beside

SECRET = 16  # signs: whoever has a token can try all that are shorter
GRACE = 5  # seconds for requests that are being answered
PING = 30.0  # seconds between signs of life on a socket, and for their answers


class Serving:
    """The port is ours from the start; requests are answered from `run` on."""

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
        self._home, self._host, self._ping = app.home.path, host, ping
        self._proxies = app.loaded.settings.server.trusted_proxies
        self._socket = _bound(host, port)
        self._server = make_server(app, host=host, names=names)
        self._server.patience = patience
        self._uvicorn: uvicorn.Server | None = None
        self._over = False

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def stop(self) -> None:
        """From any thread, or from a signal."""
        self._over = True
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True

    def heard(self) -> None:
        """From the supervisor inside: something has happened."""
        self._server.watch.heard()

    def run(self, say: Callable[[str], None], beside: Beside | None = None) -> None:
        made = self._server
        settings = uvicorn.Config(
            Observed(made.app(), made.meters, made.audit), log_level="error", access_log=False, server_header=False,
            proxy_headers=bool(self._proxies), forwarded_allow_ips=list(self._proxies),
            timeout_keep_alive=75, timeout_graceful_shutdown=GRACE, ws_max_size=1 << 20,
            http=wire(made.patience), ws_ping_interval=self._ping, ws_ping_timeout=self._ping,
            ws_per_message_deflate=False,
            ws=websocket,  # type: ignore[arg-type]  # it is only ever called
        )  # fmt: skip
        self._uvicorn = _Quiet(settings, made.let_go)
        self._uvicorn.should_exit = self._over
        here = f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{self.port}"
        with self._socket as listening, noted(self._home, here):
            say(f"Serving on {here}. `fleet token create NAME` makes a token.")
            if beside is not None:
                beside.begin()
            try:
                self._uvicorn.run(sockets=[listening])
            finally:
                if beside is not None:
                    beside.end()


class _Quiet(uvicorn.Server):
    """Signals are somebody else's: they end more than this."""

    def __init__(self, config: uvicorn.Config, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending = ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()  # first: a stream that is read would last for the whole of the grace
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _bound(host: str, port: int) -> socket.socket:
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
    listening.listen(2048)
    return listening
