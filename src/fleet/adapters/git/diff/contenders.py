"""What contenders of a race changed, and their tests on the work of others."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import QUIET, identity, run_git, text_of
from fleet.domain.errors import Unavailable
from fleet.domain.landing.changes import FileChange, is_test
from fleet.ports import Built

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.adapters.git.repo import Repo

CONTEST_SECONDS = 60.0
PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")


def read_changed(repo: Repo, before: str, after: str) -> tuple[list[FileChange], str]:
    """The files that differ, and the patch of the tests among them."""
    statuses = _pairs(_git(repo, "diff-tree", "-r", "-z", "--name-status", before, after))
    counts = _counts(_git(repo, "diff-tree", "-r", "-z", "--numstat", *PLAIN, before, after))
    files = [FileChange(path, status, counts.get(path, 0)) for path, status in statuses.items()]
    tests = [f":(literal){file.path}" for file in files if is_test(file.path)]
    if not tests:
        return files, ""
    words = ("diff", *PLAIN, "--unified=0", before, after, "--", *tests)
    return files, _git(repo, *words).decode("utf-8", "replace")


def overlay(repo: Repo, commit: str, source: str, paths: Sequence[str]) -> Built:
    """Made in the object store alone, with an index of its own."""
    entries = _git(repo, "ls-tree", "-r", "-z", source, "--", *paths) if paths else b""
    with TemporaryDirectory() as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git(repo, "read-tree", commit, env=env)
        _git(repo, "update-index", "-z", "--index-info", env=env, stdin=entries)
        tree = text_of(_git(repo, "write-tree", env=env)).strip()
    words = ("commit-tree", tree, "-p", commit, "-m", "The tests of another contender")
    made = text_of(_git(repo, *identity(repo.top), *words)).strip()
    return Built(made, tree)


def _git(
    repo: Repo, *words: str, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> bytes:
    done = run_git(repo.top, *QUIET, *words, env=env, stdin=stdin, timeout=CONTEST_SECONDS)
    if done.status:
        raise Unavailable(f"git {words[0]} failed: {done.words}")
    return done.raw


def _pairs(raw: bytes) -> dict[str, str]:
    """By path, git's letter for what happened to the file."""
    parts = iter(text_of(raw).split("\0"))
    return {path: status[:1] for status, path in zip(parts, parts, strict=False) if path}


def _counts(raw: bytes) -> dict[str, int]:
    """By path: how many lines were added and removed."""
    rows = (row.split("\t", 2) for row in text_of(raw).split("\0") if row.count("\t") >= 2)
    return {
        path: sum(int(number) for number in (added, removed) if number.isdigit())
        for added, removed, path in rows
    }
