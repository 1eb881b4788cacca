"""A client for a command, with what the person should know about the settings said once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet.cli.terminal.render import say

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from fleet.client import Client, LocalClient


_WARNED: set[str] = set()


def connect(*, config: Path | None = None, cwd: Path | None = None) -> Client:
    """To the server that FLEET_URL names, else to this machine's home."""
    from fleet import client

    made = client.connect(config=config, cwd=cwd)
    _say_notices(made)
    return made


def connect_here(*, config: Path | None = None, cwd: Path | None = None) -> LocalClient:
    """To this machine's home, for a command that is about this very machine."""
    from fleet import client

    made = client.connect_here(config=config, cwd=cwd)
    _say_notices(made)
    return made


def unsupervised(client: Client, nothing: str = "nothing starts") -> tuple[str, ...]:
    """The note `No supervisor is running, so nothing starts.`, or what else `nothing` does then."""
    hint = f"No supervisor is running, so {nothing}. Start one: fleet run"
    return () if client.supervised() else (hint,)


def _say_notices(client: Client) -> None:
    say_warnings(notices(client))


def say_warnings(texts: Iterable[str]) -> None:
    """Print warnings about the settings once; not inside a run, where no person reads them."""
    if "FLEET_RUN_ID" in os.environ:
        return
    for text in texts:
        if text not in _WARNED:  # a command may connect for several directories of one project
            _WARNED.add(text)
            say(text, "yellow")


def notices(client: Client) -> list[str]:
    from fleet.config.legacy import legacy_notice

    loaded = client.loaded
    older = legacy_notice(client.home, loaded.project)
    return [*loaded.warnings, *([older] if older else [])]
