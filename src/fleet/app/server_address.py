"""The server that commands speak to, and who they are there. Every agent may load this: it is little."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleet.adapters.server_client import Remote
from fleet.app import App
from fleet.domain.errors import Forbidden, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Remote", "named_url", "remote_of"]

URLS = ("FLEET_URL", "CLAUDE_FLEET_URL")
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
LASTS = 3600.0  # seconds: of a token that one command makes for itself


def named_url(env: Mapping[str, str]) -> str:
    return next((env[name] for name in URLS if env.get(name)), "")


def remote_of(app: App, url: str = "") -> Remote:
    """The server of this address, else the one that runs over this home."""
    at = url or named_url(app.env) or _running(app)
    if not at:
        raise Unavailable(
            "The server is not running.", fix="Start it: fleet serve --background", code="no_server"
        )
    return Remote(at, app.env.get("FLEET_TOKEN") or _own_token(app, at))


def _own_token(app: App, url: str) -> str:
    """For the server of this home its key is enough: nothing is to be pasted.

    Nobody else is given such a token: somebody else's server could use it with ours.
    """
    host, port = _place(url)
    if (host, port) != _place(_running(app)):
        if host in LOOPBACK:
            return ""  # it may say itself whether it wants one
        raise Forbidden(
            f"{url} requires a token.",
            fix="Set FLEET_TOKEN; `fleet token create NAME` makes one, where the server runs.",
            code="no_token",
        )
    from fleet.app.server_process import own_token

    here = App(app.cwd, app.env, config_file=app.config_file, flags=app.flags)
    secret = app.env.get("JWT_SECRET", "")
    return own_token(app.home.path, here.actor, seconds=LASTS, secret=secret)


def _place(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    host = parts.hostname or ""
    try:
        return "127.0.0.1" if host in LOOPBACK else host, parts.port
    except ValueError:  # a port that is none
        return host, None


def _running(app: App) -> str:
    from fleet.app.server_process import serving_at

    return serving_at(app.home.path)
