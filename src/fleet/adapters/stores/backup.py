"""A copy of an SQLite store, made while others write to it; and the way back."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from fleet.adapters.stores.migrations import LATEST
from fleet.adapters.stores.sqlite import APPLICATION, path_of
from fleet.domain.errors import BadInput, BadStore, NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

BUSY_SECONDS = 30.0


def copy_url(url: str, target: Path) -> int:
    return copy_database(path_of(url), target)


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
        raise Unavailable(
            f"{target} cannot be written: {error.strerror}.", fix=_writable(target)
        ) from error
    except sqlite3.Error as error:
        raise Unavailable(
            f"{source} cannot be copied: {error}.", fix="`fleet doctor` checks the store."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return target.stat().st_size


def restore_url(copy: Path, url: str, aside: Path) -> bool:
    return restore_database(copy, path_of(url), aside)


def restore_database(copy: Path, store: Path, aside: Path) -> bool:
    """Put the copy in the place of the store, as one transaction; whether there was a store.

    What was there before is first copied to `aside`, so that it can be put back.
    """
    _check_copy(copy)
    if was_there := store.exists():
        copy_database(store, aside)
    try:
        with (
            closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(store, timeout=BUSY_SECONDS)) as db,
        ):
            source.backup(db)
            db.execute("PRAGMA journal_mode = WAL")  # the copy is without a log beside it
        store.chmod(0o600)
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(
            f"{store} cannot be written: {error}.", fix="Check the free space, then repeat this."
        ) from error
    return was_there


def _check_copy(copy: Path) -> None:
    """Raise unless it is a whole store that this release can read."""
    if not copy.exists():
        raise NotFound(f"There is no file {copy}.", fix="`fleet backup FILE` makes one.")
    fix = "Name a file that `fleet backup` made."
    try:
        with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)) as db:
            ((state,),) = db.execute("PRAGMA quick_check(1)").fetchall()
            ((application,),) = db.execute("PRAGMA application_id").fetchall()
            ((schema,),) = db.execute("PRAGMA user_version").fetchall()
    except sqlite3.Error as error:
        raise BadInput(f"{copy} is not a copy of a store.", fix=fix) from error
    if application != APPLICATION:
        raise BadInput(f"{copy} is another program's database.", fix=fix)
    if state != "ok":
        raise BadStore(f"{copy} is damaged: {state}.", fix=fix)
    if schema > LATEST:
        raise BadStore(
            f"{copy} was written by a newer fleet (schema {schema}, this one knows {LATEST}).",
            fix="Upgrade fleet on this machine: fleet update",
        )


def _writable(target: Path) -> str:
    if not target.parent.is_dir():
        return f"Make its directory first: mkdir -p {target.parent}"
    return "Name a file in a directory that you can write to, with enough free space."


def _copy(source: Path, part: Path) -> None:
    with (
        closing(
            sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        ) as db,
        closing(sqlite3.connect(part)) as copy,
    ):
        db.backup(copy)  # in one step: of one moment, no matter who writes meanwhile
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
