"""What is removed once it is old: the settings `retention.*`."""

from __future__ import annotations

import re
import time
from itertools import islice
from typing import TYPE_CHECKING

from fleet.domain.data import dataclass
from fleet.domain.task import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleet.adapters.processes.keepers import Keepers
    from fleet.ports import Store

DAY = 86_400.0
FOLDERS_A_ROUND = 50
RUN = re.compile(r"(t-[0-9]+)\.[0-9]+")


@dataclass(frozen=True, slots=True)
class Removed:
    runs: tuple[str, ...] = ()
    bytes: int = 0


class OldTranscripts:
    """Removes what the runs of ended tasks printed, so many days after they did; 0: never.

    What is in git, in the store and in the task's own folder stays.
    """

    def __init__(self, keepers: Keepers, runs: Path, store: Store, days: float) -> None:
        self._keepers, self._folder, self._store, self._days = keepers, runs, store, days
        self._left: Iterator[Path] = iter(())
        self._next = 0.0  # when the folders are looked at again

    def step(self) -> None:
        """A few in each round of a supervisor, and all of them once a day."""
        if self._days and time.monotonic() >= self._next:
            self._left, self._next = self._old(), time.monotonic() + DAY
        self._remove(list(islice(self._left, FOLDERS_A_ROUND)))

    def remove_all(self, *, dry_run: bool = False) -> Removed:
        return self._remove(list(self._old()) if self._days else [], dry_run=dry_run)

    def _old(self) -> Iterator[Path]:
        before = time.time() - self._days * DAY
        for path in self._folder.glob("*/transcript"):
            try:
                if RUN.fullmatch(path.parent.name) and path.stat().st_mtime < before:
                    yield path
            except FileNotFoundError:  # another removed it just now
                continue

    def _remove(self, paths: list[Path], *, dry_run: bool = False) -> Removed:
        """Those of tasks that have ended. A task that the store does not know asserts nothing."""
        names = [path.parent.name for path in paths]
        tasks = self._store.tasks_by_id(sorted({name.partition(".")[0] for name in names}))
        ended = {t.id for t in tasks.values() if t.state is not TaskState.OPEN}
        runs = tuple(name for name in names if name.partition(".")[0] in ended)
        why = f"it was older than {self._days:g} days (`retention.transcripts`)"
        sizes = (self._keepers.remove_transcript(run, why, dry_run=dry_run) for run in runs)
        return Removed(runs, sum(sizes))
