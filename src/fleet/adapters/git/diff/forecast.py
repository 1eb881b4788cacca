"""Which merges would conflict, by trying all of them in one git."""

from __future__ import annotations

import os
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

from fleet.adapters.git.repo import QUIET, run_git, text_of
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from fleet.adapters.git.repo import Repo

FORECAST_SECONDS = 10.0  # for git to try the merges of all branches that are asked about
FLEETING = ("-c", "core.fsync=none", "-c", "core.looseCompression=0")  # of objects that go at once
KNOWN = 10_000  # results that are remembered
# A folder that is no disk: deleting objects takes longer than merging.
MEMORY = "/dev/shm"  # noqa: S108  # nosec B108  # only as the parent of a private folder
ROOM = 1 << 30  # bytes that must be free there
IN_MEMORY = 200  # merges whose objects are put there: each may have several large files

Pair: TypeAlias = tuple[str, str]
_CONFLICTS: dict[Pair, tuple[str, ...]] = {}  # by what is merged into what


def forecast(
    repo: Repo, pairs: Sequence[Pair], clean: Collection[Pair] = ()
) -> dict[Pair, tuple[str, ...]]:
    """The conflicting files of each, by trying the merges; nothing is written to the repository.

    `clean`: those of which the caller knows that they cannot conflict.
    """
    if fresh := unknown(pairs):
        if len(_CONFLICTS) > KNOWN:
            _CONFLICTS.clear()
        _CONFLICTS.update(dict.fromkeys(clean, ()))
        _CONFLICTS.update(try_merges(repo, [pair for pair in fresh if pair not in clean]))
    return {pair: _CONFLICTS.get(pair, ()) for pair in pairs}


def unknown(pairs: Sequence[Pair]) -> list[Pair]:
    """Those that were not tried yet, once each."""
    return list(dict.fromkeys(pair for pair in pairs if pair not in _CONFLICTS))


def try_merges(repo: Repo, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, tuple[str, ...]]]:
    """Nothing from a git that is older than 2.39, or too slow here: then no conflict is foretold."""
    words = ("merge-tree", "--write-tree", "--stdin", "--name-only", "--no-messages")
    lines = "".join(f"{ours} {theirs}\n" for ours, theirs in pairs).encode()
    if not pairs:
        return
    folder = _memory() if len(pairs) <= IN_MEMORY else None
    with TemporaryDirectory(dir=folder) as objects, suppress(Unavailable):
        env = {
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repo.common / "objects"),
        }
        done = run_git(
            repo.checkout, *QUIET, *FLEETING, *words, env=env, stdin=lines, timeout=FORECAST_SECONDS
        )
        if done.status < 0:  # killed, so that its last words may be half of what it found
            return
        parts = iter(text_of(done.raw).split("\0"))
        for pair in pairs:
            if not next(parts, ""):  # whether it is clean: git gave up before it came to this one
                return
            next(parts, "")  # its tree
            yield pair, tuple(dict.fromkeys(iter(lambda: next(parts, ""), "")))


def _memory() -> str | None:
    with suppress(OSError):
        room = os.statvfs(MEMORY)
        if room.f_bavail * room.f_frsize >= ROOM and os.access(MEMORY, os.W_OK):
            return MEMORY
    return None
