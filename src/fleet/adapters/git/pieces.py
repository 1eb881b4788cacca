"""Commits as git bundles, to and from the store that several hosts share.

A bundle leaves out what every clone can have from a remote, so that a host needs nothing but its own
clone. Where there is no remote it has all of a small repository, and of a large one only the new work.
"""

from __future__ import annotations

import base64
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import run_git
from fleet.domain.errors import FleetError
from fleet.domain.hosts.piece import MAX_BYTES, Piece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.git.repo import Repo

REF = "refs/fleet/pieces/{}"  # keeps git from removing what came
SMALL_PACKS = 2 * MAX_BYTES >> 10  # in KB: so much history is worth trying to pack whole
FETCH_SECONDS = 120.0
NEED = re.compile(rb"^-([0-9a-f]{40,64})", re.MULTILINE)


def missing(repo: Repo, commits: Sequence[str]) -> list[str]:
    """Those that are not in this clone, in one call of git."""
    query = "".join(f"{commit}^{{commit}}\n" for commit in commits)
    done = run_git(repo.top, "cat-file", "--batch-check=%(objectname)", stdin=query.encode())
    lines = done.raw.decode("utf-8", "replace").splitlines()
    return [c for c, line in zip(commits, lines, strict=False) if line.endswith(" missing")]


def pack(repo: Repo, commit: str, base: str) -> Piece | None:
    """The commit with what leads to it; None: nothing is new in it, or it is too much."""
    name = REF.format(commit)
    repo.git("update-ref", name, commit)
    try:
        for without in _exclusions(repo, base):
            done = run_git(repo.top, "bundle", "create", "-q", "-", name, *without)
            if done.status == 0 and len(done.raw) <= MAX_BYTES:
                needs = NEED.findall(done.raw.partition(b"\n\n")[0])
                data = base64.b64encode(done.raw).decode("ascii")
                return Piece(
                    commit, 0, data, tuple(n.decode() for n in needs), _roots(repo, commit)
                )
    finally:
        repo.git("update-ref", "-d", name, check=False)
    return None


def _exclusions(repo: Repo, base: str) -> list[tuple[str, ...]]:
    """What to leave out, from the least to the most."""
    remotes = run_git(repo.top, "for-each-ref", "--count=1", "refs/remotes").raw.strip()
    tries: list[tuple[str, ...]] = [("--not", "--remotes")] if remotes else []
    if not remotes and _is_small(repo):
        tries.append(())
    return [*tries, ("--not", "--remotes", base)] if base else tries


def _is_small(repo: Repo) -> bool:
    words = run_git(repo.top, "count-objects", "-v").raw.decode().split()
    sizes = dict(zip(words[::2], words[1::2], strict=False))
    return int(sizes.get("size-pack:", 0)) + int(sizes.get("size:", 0)) <= SMALL_PACKS


def _roots(repo: Repo, commit: str) -> tuple[str, ...]:
    done = run_git(repo.top, "rev-list", "--max-parents=0", commit)
    return tuple(sorted(done.raw.decode("ascii", "replace").split()))


def bring(repo: Repo, pieces: Sequence[Piece], wanted: Sequence[str]) -> list[str]:
    """Take the pieces in, in their order; from the remotes what they need. Return what is missing.

    Call this beside the loop: a remote may take its time.
    """
    for piece in pieces:
        if missing(repo, piece.needs):
            _fetch(repo)
        if missing(repo, [piece.id]) and not missing(repo, piece.needs):
            _take(repo, piece)
    left = missing(repo, wanted)
    if left and not pieces:
        _fetch(repo)
        left = missing(repo, wanted)
    return left


def _fetch(repo: Repo) -> None:
    """Whatever the remotes have. One that cannot be reached is tried again later."""
    with suppress(FleetError, OSError):
        words = ("fetch", "--quiet", "--all", "--no-tags", "--no-write-fetch-head")
        run_git(repo.top, *words, timeout=FETCH_SECONDS)


def _take(repo: Repo, piece: Piece) -> None:
    with tempfile.TemporaryDirectory(prefix="fleet-piece-") as folder:
        file = Path(folder) / "bundle"
        file.write_bytes(base64.b64decode(piece.data, validate=True))
        name = REF.format(piece.id)
        repo.git(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(file), f"{name}:{name}"
        )
