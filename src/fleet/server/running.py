"""Being the server, until a signal ends it."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import uvicorn

from fleet.domain.errors import Refused
from fleet.server.guard import LOOPBACK
from fleet.server.making import make_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.bootstrap import App

GRACE = 5  # seconds for requests that are being answered


def serve_forever(
    app: App, *, host: str, port: int, names: tuple[str, ...], say: Callable[[str], None]
) -> int:
    if host not in LOOPBACK and not os.environ.get("JWT_SECRET"):
        raise Refused(
            f"On {host} other machines could reach it, and no secret is configured.",
            fix="Set JWT_SECRET to a long secret, or leave --host out.",
        )
    app.home.ensure()
    made = make_server(app, host=host, names=names)
    settings = uvicorn.Config(
        made.app(), log_level="warning", access_log=False, server_header=False,
        timeout_keep_alive=75, timeout_graceful_shutdown=GRACE, ws_max_size=1 << 20,
    )  # fmt: skip
    with _bound(host, port) as listening:
        at = listening.getsockname()[1]
        say(f"Serving on http://{host}:{at}. `fleet token create NAME` makes a token.")
        uvicorn.Server(settings).run(sockets=[listening])
    return 0


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise Refused(
            f"Port {port} on {host} cannot be had: {error.strerror}.",
            fix="Choose another with --port.",
        ) from None
    listening.listen(2048)
    return listening
