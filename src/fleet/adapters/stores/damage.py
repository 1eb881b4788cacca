"""Read a database file without SQLite, and copy a damaged one."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"SQLite format 3\0"


def header(path: Path) -> tuple[int, int] | None:
    """The file's application and schema numbers; None when it is no readable database."""
    try:
        with path.open("rb") as file:
            start = file.read(100)
    except FileNotFoundError:
        return None
    if len(start) < 100 or not start.startswith(MAGIC):
        return None
    return int.from_bytes(start[68:72], "big"), int.from_bytes(start[60:64], "big")


def beheaded(path: Path) -> bool:
    """True for an empty file with a log beside it, which SQLite would take for a new database.

    Looked at again once there is a log: whoever is just making it writes the file first.
    """
    return _is_empty(path) and _has_log(path) and _is_empty(path)


def _is_empty(path: Path) -> bool:
    return path.exists() and not path.stat().st_size


def copy_aside(path: Path) -> str:
    """Copy the file, once per damaged file, and return a sentence that says where."""
    try:
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(path.stat().st_mtime))
        aside = path.with_name(f"{path.name}.damaged-{stamp}")
        if not aside.exists():
            if _has_log(path):
                _copy(_wal(path), _wal(aside))
            _copy(path, aside)
    except OSError as error:
        return f"It was left as it is, and could not be copied ({error.strerror})."
    return f"It was copied to {aside}."


def _copy(source: Path, target: Path) -> None:
    """Completely or not at all, and readable only for its owner."""
    import shutil  # noqa: PLC0415  # hardly ever needed, and slow to load

    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    try:
        shutil.copy2(source, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _has_log(path: Path) -> bool:
    wal = _wal(path)
    return wal.exists() and wal.stat().st_size > 0


def _wal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")
