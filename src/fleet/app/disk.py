"""Measure how much of the disk a home takes, for who looks at its machine."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.entry import Entry, EntryKind
from fleet.domain.hosts.disk import DiskUse
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fleet.adapters.home.home import Home
    from fleet.app.retention import OldKept
    from fleet.ports import Store

ROUND_SECONDS = 0.01  # of a round of the supervisor
SHARE = 10  # times as long as a round took, nothing is measured after it
MEASURE_AGAIN_SECONDS = 3600.0  # seconds after all was measured
KEPT = 30 * 86_400 * 1_000_000  # for so long it is told of a machine that is off
ENTRIES_A_STEP = 64
WAITING = ("pool", "set-ups")  # among the worktrees, for the next tasks
BLOCK = 512  # bytes, whatever the file system's own are: see stat(2)


class DiskLook:
    """Looks at a few files in each round of a supervisor, and writes a row once it saw all."""

    def __init__(self, store: Store, home: Home, host: str, kept: OldKept) -> None:
        self._store, self._home, self._host, self._kept = store, home, host, kept
        self._sums: Counter[str] = Counter()
        self._left: Iterator[None] | None = None
        self._next = 0.0

    def step(self) -> None:
        began = time.monotonic()
        if began < self._next:
            return
        if self._left is None:
            self._sums, self._left = Counter(), self._measure()
        for _ in self._left:
            took = time.monotonic() - began
            if took >= ROUND_SECONDS:
                self._next = began + (1 + SHARE) * took
                return
        self._left, self._next = None, began + MEASURE_AGAIN_SECONDS
        self._write()

    def _measure(self) -> Iterator[None]:
        home = self._home
        waiting = [home.worktrees / name for name in WAITING]
        for name, folder, but in (
            ("worktrees", home.worktrees, waiting),
            ("worktrees", home.path / "gates", ()),
            *(("pool", folder, ()) for folder in waiting),
            ("runs", home.runs, ()),
        ):
            for size in sizes_below(folder, but):
                self._sums[name] += size
                yield
        for size in self._kept.sizes():
            self._sums["kept"] += size
            yield

    def _write(self) -> None:
        store, now = self._store, self._store.now()
        free = shutil.disk_usage(self._home.path).free
        use = DiskUse(**self._sums, free=free)
        known = store.entry(EntryKind.DISK, "", self._host)
        row = known or Entry(store.new_id("e"), 0, EntryKind.DISK, "", self._host, "", now)
        store.commit([Put(replace(row, at=now, until=now + KEPT, body=use._asdict()))], [])
        store.prune(EntryKind.DISK, "", now=now)


def sizes_below(folder: Path, but: Sequence[Path] = ()) -> Iterator[int]:
    """The bytes on disk of what is in a folder, some files at a time, without those below `but`.

    A file with more names counts at each for its share: several worktrees may have it in common.
    """
    left, without = [str(folder)], frozenset(map(str, but))
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:  # others may remove it meanwhile
            yield from _sizes(entries, left, without)


def _sizes(
    entries: Iterator[os.DirEntry[str]], left: list[str], but: frozenset[str]
) -> Iterator[int]:
    """Of what a folder has. The folders in it come to `left`."""
    size = 0
    for number, entry in enumerate(entries, 1):
        with suppress(OSError):
            if entry.path in but:
                continue
            seen = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                left.append(entry.path)
                size += seen.st_blocks * BLOCK
            else:
                size += seen.st_blocks * BLOCK // max(1, seen.st_nlink)
        if number % ENTRIES_A_STEP == 0:
            yield size
            size = 0
    yield size
