"""The clones of projects that this home has seen, and their names in a shared store."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fleet.base.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.adapters.home.home import Home


class Clones:
    """The file `clones.json` of a home. `store` identifies the store whose names are meant.

    It has, by path, what identifies the clone, the stamp at which that was read, and the clone's
    name in each store.
    """

    def __init__(self, home: Home, store: str) -> None:
        self._home, self._file, self._store = home, home.path / "clones.json", store
        self._read: tuple[tuple[int, ...], dict[str, dict[str, Any]]] = ((), {})

    @property
    def stamp(self) -> tuple[int, ...]:
        with suppress(OSError):
            seen = self._file.stat()
            return (seen.st_ino, seen.st_mtime_ns)
        return ()

    def all(self) -> dict[str, dict[str, Any]]:
        stamp = self.stamp
        if stamp != self._read[0]:
            self._read = (stamp, self._load())
        return self._read[1]

    def _load(self) -> dict[str, dict[str, Any]]:
        with suppress(OSError, ValueError):
            rows = json.loads(self._file.read_text("utf-8"))
            return {str(path): dict(row) for path, row in rows.items()}
        return {}

    def name(self, path: str) -> str:
        """Return the clone's name in the store; empty: it has none yet."""
        return str(self.all().get(path, {}).get("names", {}).get(self._store, ""))

    def note(self, path: str, stamp: list[int], clone: list[Any], name: str = "") -> None:
        """Note what identifies a clone, as of this stamp; keep its names while that is the same."""
        row = self.all().get(path, {})
        if (row.get("stamp"), row.get("clone")) == (stamp, clone) and (not name or self.name(path)):
            return
        with self._alone():
            rows = self._load()
            row = rows.get(path, {})
            names = row.get("names", {}) if row.get("clone") == clone else {}
            rows[path] = {
                "stamp": stamp, "clone": clone,
                "names": {self._store: name, **names} if name else names,
            }  # fmt: skip
            write_atomically(self._file, json.dumps(rows, indent=1))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._home.ensure()
        fd = os.open(self._home.path / "clones.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
