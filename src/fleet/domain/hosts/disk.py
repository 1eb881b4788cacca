"""How much of a machine's disk its home takes, as its supervisor measured it last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LITTLE = 10**9  # bytes that are free: the next worktree may find no room


class DiskUse(NamedTuple):
    """In bytes. `free`: for this user, on the file system of the home.

    `worktrees`: also those in which gates run; `pool`: what waits for the next tasks, finished
    set-ups too. `kept`: what only kept work holds in its repositories. `runs`: transcripts and what else runs left.
    """

    worktrees: int = 0
    pool: int = 0
    kept: int = 0
    runs: int = 0
    free: int = 0

    @property
    def total(self) -> int:
        return self.worktrees + self.pool + self.kept + self.runs


def disk_use(body: Mapping[str, Any]) -> DiskUse:
    """As a store has it; a part that is not there was not measured."""
    return DiskUse(*(int(body.get(name) or 0) for name in DiskUse._fields))


def bytes_in_words(count: int) -> str:
    """As `df -H` counts: a GB is 1000 MB."""
    if count >= 10**9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.0f} MB" if count >= 10**6 else f"{count / 1e3:.0f} kB"
