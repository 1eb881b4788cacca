"""The settings of projects, read again when they change, for long-lived processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import BadConfig

if TYPE_CHECKING:
    from fleet.app.app import App
    from fleet.config import Loaded


class Worlds:
    """The settings of each project, read again when its files change.

    When a file becomes wrong, the last good settings stay in force; `complaints` says so.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._loaded: dict[str, tuple[tuple[int, ...], Loaded]] = {}
        self._complaints: dict[str, str] = {}

    @property
    def complaints(self) -> dict[str, str]:
        """Return, by project, what is wrong with its settings.

        It reads those settings again, as nothing else does once their tasks have ended.
        """
        for project in tuple(self._complaints):
            self(project)
        return self._complaints

    def __call__(self, project: str) -> Loaded:
        from fleet.config import load

        app = self._app
        world = self._loaded.get(project)
        stamp = self._stamp(project)
        if world is not None and world[0] == stamp:
            return world[1]
        try:
            cwd = Path(project) if project else app.home.path
            loaded = load(cwd, home=app.home.path, env=app.env, flags=app.flags)
            self._complaints.pop(project, None)
        except BadConfig as error:
            if world is None:
                raise
            self._complaints[project] = error.message
            loaded = world[1]
        self._loaded[project] = (stamp, loaded)
        return loaded

    def _stamp(self, project: str) -> tuple[int, ...]:
        """Return when the settings' files changed; uses strings, as `Path` takes thrice as long."""
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
