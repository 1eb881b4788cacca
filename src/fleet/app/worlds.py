"""What projects declare, for a process that may outlive a change of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import BadConfig

if TYPE_CHECKING:
    from fleet.app import App
    from fleet.config import Loaded


class Worlds:
    """What each project declares, read again when its files change.

    A file that has become wrong leaves the last good one in force; `complaints` says so.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._held: dict[str, tuple[tuple[int, ...], Loaded]] = {}
        self._complaints: dict[str, str] = {}

    @property
    def complaints(self) -> dict[str, str]:
        """By project, as its files are now: nobody else may ask for it once its tasks have ended."""
        for project in tuple(self._complaints):
            self(project)
        return self._complaints

    def __call__(self, project: str) -> Loaded:
        from fleet.config import load

        app = self._app
        held = self._held.get(project)
        stamp = self._stamp(project)
        if held is not None and held[0] == stamp:
            return held[1]
        try:
            cwd = Path(project) if project else app.home.path
            loaded = load(cwd, home=app.home.path, env=app.env, flags=app.flags)
            self._complaints.pop(project, None)
        except BadConfig as error:
            if held is None:
                raise
            self._complaints[project] = error.message
            loaded = held[1]
        self._held[project] = (stamp, loaded)
        return loaded

    def _stamp(self, project: str) -> tuple[int, ...]:
        """Asked for in every step of every run: with plain strings, in a third of the time."""
        home = self._app.home.path
        files = [f"{home}/config.yaml", f"{home}/trusted.json"]
        if project:
            files.append(f"{project}/fleet.yaml")
        return tuple([_changed_at(file) for file in files])


def _changed_at(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns  # noqa: PTH116  # see above
    except OSError:
        return 0
