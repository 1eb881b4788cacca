"""Where on this machine the projects of a shared store are: each machine has its clone where it likes."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from fleet.adapters.git.clone import clone_of
from fleet.adapters.git.repo import digest
from fleet.adapters.home.clones import Clones
from fleet.adapters.stores.placed import PlacedStore
from fleet.config import checkout_top
from fleet.domain.data import NamedTuple
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import Conflict, FleetError
from fleet.domain.hosts.clone import Clone
from fleet.ports import Put
from fleet.ports.store import EntryQuery, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fleet.adapters.home.home import Home
    from fleet.config import Loaded
    from fleet.ports import Store

AGAIN = 30.0  # seconds after which we ask the store again about what it did not know
MOST_PROJECTS = 10_000  # projects of one store


def placed_store(store: Store, home: Home, loaded: Loaded) -> Store:
    """The store with the paths of this home's clones. The one that the command is typed in is such a clone."""
    names = digest(f"{_address(loaded.settings.store.url)} {loaded.settings.store.schema}")
    places = Places(store, Clones(home, names), home.host_id, clone_of)
    if loaded.project is not None:
        places.clone(str(loaded.project))
    return cast("Store", PlacedStore(store, places))


def _address(url: str) -> str:
    """Without the login, which can change."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}?{parts.query}"


class _CachedAnswer(NamedTuple):
    """What we found last, and when: it holds for a while, unless the clones of this home change."""

    at: float
    stamp: tuple[int, ...]
    answer: str


class Places:
    """The name of a project in the store is the path that it had where the store first saw it.

    A clone here has that name if it is of the same repository. No two clones of one machine share a
    name. `identify` runs git.
    """

    def __init__(
        self,
        store: Store,
        clones: Clones,
        host: Callable[[], str],
        identify: Callable[[str], Clone | None],
    ) -> None:
        self._store, self._clones, self._host, self._identify = store, clones, host, identify
        self._here: dict[str, _CachedAnswer] = {}  # by name
        self._names: dict[str, _CachedAnswer] = {}  # by path
        self._strangers: dict[str, str] = {}  # by a path that stands for no directory: its name

    def here(self, name: str) -> str:
        """The directory that it is in; else a path at which nothing is on this machine."""
        return self._look(self._here, name, self._find)

    def name(self, path: str) -> str:
        """What the store calls the project in this directory, if that knows it."""
        return self._strangers.get(path) or self._look(self._names, path, self._find_name)

    def register(self, path: str) -> str:
        """What the store calls it from now on."""
        name, clone = self.name(path), self.clone(path)
        if clone is None or path in self._strangers or self._clones.name(path):
            return name
        number, now = self._store.new_id("e"), self._store.now()
        body = clone._asdict()
        with suppress(Conflict):  # somebody else was quicker
            new = Entry(number, 0, EntryKind.PROJECT, "", name, self._host(), now, body=body)
            self._store.commit([Put(new)], [])
        self._names.pop(path, None)
        return self.name(path)

    def clone(self, path: str) -> Clone | None:
        """What the clone is recognised by, as the home remembers it."""
        stamp = _stamp(path)
        if not stamp:
            return None
        row = self._clones.all().get(path, {})
        if row.get("stamp") == stamp:
            return Clone(tuple(row["clone"][0]), *row["clone"][1:])
        clone = self._identify(path)
        if clone is not None:
            self._note(path, clone)
        return clone

    def _look(self, known: dict[str, _CachedAnswer], what: str, find: Callable[[str], str]) -> str:
        now, stamp = time.monotonic(), self._clones.stamp
        look = known.get(what)
        if look is None or look.stamp != stamp or now - look.at > AGAIN:
            look = _CachedAnswer(now, self._clones.stamp, find(what))
            known[what] = look
        return look.answer

    def _find(self, name: str) -> str:
        for path in self._clones.all():
            if self._clones.name(path) == name and os.path.isdir(path):  # noqa: PTH112  # often asked
                return path
        entry = self._store.entry(EntryKind.PROJECT, "", name)
        if entry is None:
            return name
        wanted, own = Clone.of(entry.body), self.clone(name)
        free = [(path, clone) for path, clone in self._own() if not self._clones.name(path)]
        same = [path for path, clone in free if clone.is_same(wanted)]
        if own is not None and own.is_same(wanted):
            same.insert(0, name)
        if same:
            best = min(same, key=lambda path: (path != name, self.clone(path) != wanted))
            self._note(best, self.clone(best), name)
            return best
        if own is None:
            return name
        stranger = f"{name}@{wanted.roots[0][:8]}"  # what is at its path here is another project
        self._strangers[stranger] = name
        return stranger

    def _find_name(self, path: str) -> str:
        clone = self.clone(path)
        if known := self._clones.name(path):
            return known
        entry = self._store.entry(EntryKind.PROJECT, "", path)
        if clone is None:
            return path
        if entry is not None and clone.is_same(Clone.of(entry.body)):
            self._note(path, clone, path)
            return path
        if entry is None and self._store.tasks(TaskQuery(project=path, limit=1)):
            return path  # of before projects had names
        for other in self._others(clone):
            self._note(path, clone, other)
            return other
        return path if entry is None else f"{path}@{self._host()}"

    def _others(self, clone: Clone) -> Iterator[str]:
        """The names of the same project, of which no clone is on this machine; the best first."""
        rows = self._store.entries(EntryQuery(EntryKind.PROJECT, limit=MOST_PROJECTS))
        same = [(row, Clone.of(row.body)) for row in reversed(rows)]
        same = [(row, its) for row, its in same if its.is_same(clone)]
        for row, _ in sorted(same, key=lambda pair: pair[1] != clone):
            its_own = self.clone(row.key)
            is_here = its_own is not None and its_own.is_same(clone)
            if not is_here and row.key not in self._taken():
                yield row.key

    def _taken(self) -> set[str]:
        return {self._clones.name(path) for path, _ in self._own()} - {""}

    def _own(self) -> Sequence[tuple[str, Clone]]:
        known = [(path, self.clone(path)) for path in tuple(self._clones.all())]
        return [(path, clone) for path, clone in known if clone is not None]

    def _note(self, path: str, clone: Clone | None, name: str = "") -> None:
        known: list[Any] = [[*clone.roots], clone.remote, clone.inside] if clone else []
        with suppress(FleetError, OSError):  # a home that cannot be written finds out each time
            self._clones.note(path, _stamp(path), known, name)


def _stamp(path: str) -> list[int]:
    """Changes when another repository takes its place, or its remotes change; empty: it is none."""
    top = checkout_top(Path(path))
    if top is None:
        return []
    with suppress(OSError):
        seen = [(top / ".git").stat().st_ino]
        with suppress(OSError):
            seen.append((top / ".git" / "config").stat().st_mtime_ns)
        return seen
    return []
