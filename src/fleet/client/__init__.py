"""Call an operation with one signature, on this machine or on a server elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.app import ISOLATED, App
from fleet.client.client import Client
from fleet.client.local import LocalClient
from fleet.domain.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Client", "LocalClient", "connect", "connect_here", "here", "is_away"]


def is_away() -> bool:
    """Whether commands speak to a server elsewhere."""
    return bool(os.environ.get("FLEET_URL") or os.environ.get("CLAUDE_FLEET_URL"))


def connect(
    *,
    config: Path | None = None,
    flags: Mapping[str, object] | None = None,
    cwd: Path | None = None,
) -> Client:
    """Connect to the server that FLEET_URL names, else to this machine's home."""
    if is_away():
        from fleet.client.remote import RemoteClient  # few commands go there

        return RemoteClient(_app(config, flags, cwd))
    return _local(_app(config, flags, cwd))


def connect_here(*, config: Path | None = None, cwd: Path | None = None) -> LocalClient:
    """Connect to this machine's home, for a command about this very machine."""
    return _local(_app(config, None, cwd))


def _local(app: App) -> LocalClient:
    if app.env.get(ISOLATED):
        raise Unavailable(
            "This agent is isolated from the store, so its commands need a server, and none is running.",
            fix="Start one for later runs, outside of the agent: fleet serve --background",
            code="no_server",
        )
    return LocalClient(app)


def _app(config: Path | None, flags: Mapping[str, object] | None, cwd: Path | None) -> App:
    return App(cwd or here(), os.environ, config_file=config, flags=flags or {})


def here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise BadInput(
            "The current directory no longer exists.", fix="cd to a directory that exists."
        ) from error
