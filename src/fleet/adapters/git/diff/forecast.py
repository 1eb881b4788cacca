"""Which merges would conflict, by trying all of them in one git."""

from __future__ import annotations

from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

from fleet.adapters.git.repo import QUIET, run_git, text_of
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleet.adapters.git.repo import Repo

FORECAST_SECONDS = 10.0  # for git to try the merges of all branches that are asked about
FLEETING = ("-c", "core.fsync=none", "-c", "core.looseCompression=0")  # of objects that go at once
KNOWN = 10_000  # results that are remembered

Pair: TypeAlias = tuple[str, str]
_CONFLICTS: dict[Pair, tuple[str, ...]] = {}  # by what is merged into what


def forecast(repo: Repo, pairs: Sequence[Pair]) -> dict[Pair, tuple[str, ...]]:
    """The conflicting files of each, by trying the merges; nothing is written to the repository."""
    fresh = list(dict.fromkeys(pair for pair in pairs if pair not in _CONFLICTS))
    if fresh:
        if len(_CONFLICTS) > KNOWN:
            _CONFLICTS.clear()
        _CONFLICTS.update(try_merges(repo, fresh))
    return {pair: _CONFLICTS.get(pair, ()) for pair in pairs}


def try_merges(repo: Repo, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, tuple[str, ...]]]:
    """Nothing from a git that is older than 2.39, or too slow here: then no conflict is foretold."""
    words = ("merge-tree", "--write-tree", "--stdin", "--name-only", "--no-messages")
    lines = "".join(f"{ours} {theirs}\n" for ours, theirs in pairs).encode()
    with TemporaryDirectory() as objects, suppress(Unavailable):
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
