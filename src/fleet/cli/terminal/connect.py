"""A client for a command, with what the person should know about the settings said once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet.cli.terminal.render import say

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.client import Client


def connect(*, config: Path | None = None, cwd: Path | None = None) -> Client:
    """To this machine's home. Inside a run nobody reads notices, so none are given."""
    from fleet import client

    made = client.connect(config=config, cwd=cwd)
    if "FLEET_RUN_ID" not in os.environ:
        for notice in notices(made):
            say(notice, "yellow")
    return made


def notices(client: Client) -> list[str]:
    from fleet.config.legacy import legacy_notice

    loaded = client.app.loaded
    older = legacy_notice(client.app.home.path, loaded.project)
    return [*loaded.warnings, *([older] if older else [])]
