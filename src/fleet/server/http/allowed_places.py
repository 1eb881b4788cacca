"""What somebody may name who asks from outside: the one door to it, for HTTP and MCP alike."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.domain.access import allow_named
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from fleet.domain.access import Actor
    from fleet.domain.task import Spec
    from fleet.operations.catalogue import Operation
    from fleet.ports import Store

FRESH = 1.0  # seconds
KEPT = 1000
DIRECTORIES = ("project", "cwd")  # what operations call the directory that something happens in


class Narrow:
    """`places`: directories in which everybody may have work done. They are where they really are."""

    def __init__(self, store: Store, places: tuple[str, ...]) -> None:
        self._store = store
        self._places = tuple(Path(os.path.realpath(Path(p).expanduser())) for p in places if p)
        self._home = Path(os.path.realpath(Path.home()))
        self._known: dict[tuple[str, str], float] = {}  # when it was last found to be

    def check(self, operation: Operation, actor: Actor, request: Any) -> None:
        """Before anything is done: raise unless the actor may name what the request names."""
        if operation.is_read:
            return
        spec: Spec | None = getattr(request, "spec", None)
        named = [getattr(request, name, "") for name in DIRECTORIES]
        commands: list[str] = []
        if spec is not None:
            named.append(spec.cwd)
            commands += ["a command as its gate"] if spec.gate else []
            commands += ["work outside a worktree"] if spec.in_place else []
        allow_named(
            actor,
            places=tuple(dict.fromkeys(path for path in named if path)),
            commands=tuple(commands),
            is_known=lambda path: self._is_known(path, actor.team),
        )

    def _is_known(self, path: str, team: str) -> bool:
        """What was so a moment ago is not looked at again: links are slow to follow."""
        key, now = (path, team), time.monotonic()
        if now - self._known.get(key, now - FRESH) < FRESH:
            return True
        known = self._exists(path, team)
        if known:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[key] = now
        return known

    def _exists(self, named: str, team: str) -> bool:
        if "\0" in named or not Path(named).is_absolute():
            return False
        there = Path(os.path.realpath(named))
        if any(self._covers(known, there) for known in self._places):
            return True
        above = (str(path) for path in (there, *there.parents))
        return any(self._has_tasks(project, team) for project in (named, *above))

    def _covers(self, known: Path, there: Path) -> bool:
        """Somebody's home is a place, but not all that is in it."""
        return there == known or (known in there.parents and not self._home.is_relative_to(known))

    def _has_tasks(self, project: str, team: str) -> bool:
        return bool(self._store.tasks(TaskQuery(project=project, team=team, limit=1)))
