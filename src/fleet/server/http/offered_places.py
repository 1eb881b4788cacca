"""In which directories the clients of this server may have agents work."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

FRESH = 1.0  # seconds
KEPT = 1000


class OfferedPlaces:
    """Decides whether a team may name a directory. `places` are open to every team.

    So are the directories below them. A team may also name a project in which it has tasks. For
    the home directory of the server's user, and those above it, nothing below is included.
    """

    def __init__(self, places: tuple[str, ...]) -> None:
        self._places = tuple(Path(os.path.realpath(Path(p).expanduser())) for p in places if p)
        self._home = Path(os.path.realpath(Path.home()))
        self._known: dict[tuple[str, str], float] = {}  # when it was last seen to be offered

    def __call__(self, context: Context, directory: str) -> bool:
        """Whether the team may name it; a yes is kept for a second, as resolving links is slow."""
        key, now = (directory, context.actor.team), time.monotonic()
        if now - self._known.get(key, now - FRESH) < FRESH:
            return True
        offered = self._is_offered(context, directory)
        if offered:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[key] = now
        return offered

    def _is_offered(self, context: Context, directory: str) -> bool:
        if "\0" in directory or not Path(directory).is_absolute():
            return False
        real = Path(os.path.realpath(directory))
        if any(self._covers(path, real) for path in self._places):
            return True
        above = (path for path in (real, *real.parents) if self._covers(path, real))
        return any(_has_tasks(context, project) for project in (directory, *map(str, above)))

    def _covers(self, path: Path, real: Path) -> bool:
        return real == path or (path in real.parents and not self._home.is_relative_to(path))


def _has_tasks(context: Context, project: str) -> bool:
    query = TaskQuery(project=project, team=context.actor.team, limit=1)
    return bool(context.store.tasks(query))
