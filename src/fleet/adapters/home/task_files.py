"""The files about a task, for people to read: its logs, its artifacts and its coders' stderr.

Agents write some of them, so only regular files inside the folder are read: no links, no pipes.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.redaction import Redactor, secret_values
from fleet.ports import FileSeen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOGS = ("log.jsonl", "events.jsonl", "log.stderr", "task.json")
ARTIFACTS = "artifacts"
MAX_FILES = 200
SECOND = 1_000_000
_HOW = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def task_files(
    folder: Path, runs: Sequence[tuple[str, Path]], wanted: str, tail: int
) -> list[FileSeen]:
    """List the files. `runs`: the newest, with their folders.

    `wanted`: return only the file of this name, with its last `tail` bytes.
    """
    opened = chain(_logs(folder), _stderrs(runs), _left(folder / ARTIFACTS))
    files = []
    for name, handle in opened:
        with os.fdopen(handle, "rb") as file:
            if not wanted or name == wanted:
                seen = os.fstat(handle)
                text = ""
                if wanted:
                    file.seek(max(0, seen.st_size - tail))
                    text = file.read(tail).decode("utf-8", "replace")
                at = round(seen.st_mtime * SECOND)
                files.append(FileSeen(name, seen.st_size, at, _clean(text)))
    return files


def _clean(text: str) -> str:
    return Redactor(secret_values(os.environ)).text(text) if text else ""


def _logs(folder: Path) -> Iterator[tuple[str, int]]:
    for name in LOGS:
        yield from _opened(name, str(folder / name))


def _stderrs(runs: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, int]]:
    for run, folder in runs:
        yield from _opened(f"{run}/stderr", str(folder / "stderr"))


def _left(folder: Path) -> Iterator[tuple[str, int]]:
    """Open the files in `artifacts/`, at any depth."""
    count = 0
    with suppress(OSError):
        for directory, folders, names, handle in os.fwalk(folder, follow_symlinks=False):
            folders.sort()
            for name in sorted(names):
                count += 1
                if count > MAX_FILES:
                    return
                below = (Path(directory) / name).relative_to(folder.parent)
                yield from _opened(str(below), name, handle)


def _opened(name: str, path: str, folder: int | None = None) -> Iterator[tuple[str, int]]:
    """Open a file if it is a regular one; the caller closes it."""
    try:
        handle = os.open(path, _HOW, dir_fd=folder)
    except OSError:
        return
    if stat.S_ISREG(os.fstat(handle).st_mode):
        yield name, handle
    else:
        os.close(handle)
