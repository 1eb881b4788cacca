"""The server that commands call, and their token. Every agent may load this, so it is small."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleet.adapters.server_client import Remote
from fleet.app.app import App
from fleet.domain.errors import Forbidden, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_URL", "Remote", "linked_server", "named_url", "remote_of", "signer_of"]

DEFAULT_URL = "http://127.0.0.1:3847"  # where `fleet serve` listens unless it is told otherwise
URLS = ("FLEET_URL", "CLAUDE_FLEET_URL")
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
LASTS = 3600.0  # seconds for which a token that a command makes for itself is valid


def named_url(env: Mapping[str, str]) -> str:
    return next((env[name] for name in URLS if env.get(name)), "")


def remote_of(app: App) -> Remote:
    """The server that the environment names, else the one of this home."""
    address = named_url(app.env) or _running(app)
    if not address:
        raise Unavailable(
            "The server is not running.", fix="Start it: fleet serve --background", code="no_server"
        )
    return Remote(address, app.env.get("FLEET_TOKEN") or _own_token(app, address))


def signer_of(app: App) -> Remote | None:
    """Return this home's running server if it would refuse tokens that we sign, else None.

    Such a server has a JWT_SECRET that this shell does not have.
    """
    from fleet.app.token_keys import signs_alike

    if signs_alike(app.home.path, app.env):
        return None
    url = _running(app)
    return Remote(url, _own_token(app, url))


def linked_server(app: App) -> Remote | None:
    """The server that `host.server` names, else the one that runs over this home.

    A machine's own token can only read; FLEET_TOKEN is used instead where it is set.
    """
    from fleet.app.hosts.settle import TOKEN

    url = app.loaded.settings.host.server
    file = app.home.path / TOKEN
    if url and (token := app.env.get("FLEET_TOKEN", "")):
        return Remote(url, token)
    if url and file.exists():
        return Remote(url, file.read_text("utf-8").strip())
    url = _running(app)
    return Remote(url, _own_token(app, url)) if url else None


def _own_token(app: App, url: str) -> str:
    """A token for this home's own server, made with its key, so that no one has to paste one.

    No other server gets such a token: it could use it to call ours.
    """
    host, port = _host_and_port(url)
    if (host, port) != _host_and_port(_running(app)):
        if host in LOOPBACK:
            return ""  # that server tells whether it requires a token
        raise Forbidden(
            f"{url} requires a token.",
            fix="Set FLEET_TOKEN; `fleet token create NAME` makes one, where the server runs.",
            code="no_token",
        )
    from fleet.app.token_keys import own_token

    local = App(app.cwd, app.env, config_file=app.config_file, flags=app.flags)
    return own_token(app.home.path, local.actor, seconds=LASTS)


def _host_and_port(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    host = parts.hostname or ""
    try:
        return "127.0.0.1" if host in LOOPBACK else host, parts.port
    except ValueError:  # the port is not a number
        return host, None


def _running(app: App) -> str:
    from fleet.app.server_process import serving_at

    return serving_at(app.home.path)
