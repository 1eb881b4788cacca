"""Commits as git bundles, to and from the store that several hosts share.

A bundle leaves out what every clone can have from a remote, so that a host needs nothing but its own
clone. Where there is no remote it has all of a small repository, and of a large one only the new work.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import run_git
from fleet.domain.errors import FleetError
from fleet.domain.hosts.piece import MAX_BYTES, split, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.git.repo import Repo
    from fleet.domain.hosts.piece import Piece

REF = "refs/fleet/pieces/{}"  # keeps git from removing what came
SMALL_PACKS = 2 * MAX_BYTES >> 10  # in KB: so much history is worth trying to pack whole
FETCH_SECONDS = 120.0
NEED = re.compile(rb"^-([0-9a-f]{40,64})", re.MULTILINE)


def missing(repo: Repo, commits: Sequence[str]) -> list[str]:
    """The commits that are not in this clone, found with one call of git."""
    query = "".join(f"{commit}^{{commit}}\n" for commit in commits)
    done = run_git(repo.top, "cat-file", "--batch-check=%(objectname)", stdin=query.encode())
    lines = done.raw.decode("utf-8", "replace").splitlines()
    return [c for c, line in zip(commits, lines, strict=False) if line.endswith(" missing")]


def pack(repo: Repo, commit: str, base: str) -> tuple[Piece, ...]:
    """The commit with what leads to it, in one or more parts; none: nothing is new, or it is too much."""
    name = REF.format(commit)
    repo.git("update-ref", name, commit)
    try:
        for without in _exclusions(repo, base):
            done = run_git(repo.top, "bundle", "create", "-q", "-", name, *without)
            needs = [need.decode() for need in NEED.findall(done.raw.partition(b"\n\n")[0])]
            if done.status == 0 and (parts := split(commit, done.raw, needs, _roots(repo, commit))):
                return parts
    finally:
        repo.git("update-ref", "-d", name, check=False)
    return ()


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
    known = {piece.id: piece for piece in pieces}
    for piece in pieces:
        bundle = None if piece.is_part else whole(piece, known)
        if bundle is None or not missing(repo, [piece.id]):
            continue
        if missing(repo, piece.commits):
            _fetch(repo)
        if not missing(repo, piece.commits):
            _take(repo, piece.id, bundle)
    left = missing(repo, wanted)
    if left:  # what was too large for the store may have been pushed
        _fetch(repo)
        left = missing(repo, wanted)
    return left


def _fetch(repo: Repo) -> None:
    """Whatever the remotes have. One that cannot be reached is tried again later."""
    with suppress(FleetError, OSError):
        words = ("fetch", "--quiet", "--all", "--no-tags", "--no-write-fetch-head")
        run_git(repo.top, *words, timeout=FETCH_SECONDS)


def _take(repo: Repo, commit: str, bundle: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="fleet-piece-") as folder:
        file = Path(folder) / "bundle"
        file.write_bytes(bundle)
        name = REF.format(commit)
        repo.git(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(file), f"{name}:{name}"
        )
