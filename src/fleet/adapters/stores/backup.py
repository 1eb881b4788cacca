"""A copy of an SQLite store, made while others write to it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from fleet.domain.errors import BadStore, NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

BUSY_SECONDS = 30.0


def copy_database(source: Path, target: Path) -> int:
    """The bytes of the copy. It is there as a whole or not at all, and only its owner can read it."""
    if not source.exists():
        raise NotFound(f"There is no store at {source} yet.", fix="Add a task first.")
    if target.exists():
        raise Refused(f"{target} exists.", fix="Name a new file.")
    part = target.with_name(f"{target.name}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW, 0o600))
        _copy(source, part)
        os.link(part, target)  # unlike a rename, it replaces nothing
    except FileExistsError:
        raise Refused(f"{target} exists.", fix="Name a new file.") from None
    except OSError as error:
        raise Unavailable(f"{target} cannot be written: {error.strerror}.") from error
    except sqlite3.Error as error:
        raise Unavailable(f"{source} cannot be copied: {error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return target.stat().st_size


def _copy(source: Path, part: Path) -> None:
    with (
        closing(
            sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        ) as db,
        closing(sqlite3.connect(part)) as copy,
    ):
        db.backup(copy)  # in one step: of one moment, whoever writes meanwhile
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
        ((state,),) = copy.execute("PRAGMA quick_check(1)").fetchall()
        copy.commit()
    if state != "ok":
        raise BadStore(f"{source} is damaged: {state}.", fix="Recover it first: `fleet doctor`.")
    fd = os.open(part, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
