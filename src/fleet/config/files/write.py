"""Files that people edit too: written whole where a link leads, one writer at a time."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from fleet.base.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def write_whole(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace the file in one step; through a link, the file it points to. Its mode is kept."""
    target = path.resolve()
    if mode is None:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, data, mode=mode, exact=True)
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def only_writer(home: Path) -> Iterator[None]:
    """Hold the right to change the configuration: read, change and write are one step."""
    import fcntl  # noqa: PLC0415 - only for commands that write

    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(home / ".config.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
