"""`fleet backup` and `fleet restore`: the whole store as one file."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING

from fleet.app.server_process import serving_pid
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.app.app import App


def back_up(app: App, target: Path) -> int:
    """Copy the store into a new file; the bytes of the copy. Raise `Refused` for a server's."""
    kind = app.store_kind
    if not kind.copies:
        raise Refused(
            f"The store is {kind.name}, which has its own program for backups.", fix=kind.dumps
        )
    module, _, name = kind.copies.partition(":")
    copied: int = getattr(import_module(module), name)(app.loaded.settings.store.url, target)
    return copied


def restore(app: App, copy: Path) -> Path | None:
    """Put a copy in the place of the store; where that is now, if there was one.

    Raise `Refused` while a supervisor or a server of this home runs: they remember what it was.
    """
    kind = app.store_kind
    if not kind.restores:
        raise Refused(
            f"The store is {kind.name}, which has its own program to restore a backup.",
            fix=kind.loads or kind.dumps,
        )
    if serving_pid(app.home.path):
        raise Refused("This home's server is running.", fix="Stop it first: fleet serve --stop")
    module, _, name = kind.restores.partition(":")
    put_back = getattr(import_module(module), name)
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() // 1000 % 1_000_000:06}"
    aside = app.home.path / f"fleet-{stamp}.before-restore.db"
    with app.home.alone() as is_alone:
        if not is_alone:
            raise Refused("This home's supervisor is running.", fix="Stop it first: fleet run stop")
        was_there = put_back(copy, app.loaded.settings.store.url, aside)
    return aside if was_there else None
