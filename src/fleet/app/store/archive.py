"""`fleet archive`: what is about to be forgotten, in a file of one JSON object a line."""

from __future__ import annotations

import gzip
import json
import os
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from fleet.app.retention import EVENTS_A_ROUND, OldHistory
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, Refused, Unavailable
from fleet.domain.record_json import changed
from fleet.ports import LandingQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleet.app.app import App
    from fleet.domain.task import Task
    from fleet.ports import Store

MOST_LANDINGS = 1000  # of one task


@dataclass(frozen=True, slots=True)
class Archived:
    """What was written; `forgotten`: the tasks of those that are gone from the store now."""

    file: str
    bytes: int
    compression: str
    tasks: tuple[str, ...] = ()
    events: int = 0
    forgotten: tuple[str, ...] = ()


def archive(app: App, file: Path, *, days: float | None, prune: bool) -> Archived:
    """Archive what is older than so many days, else than `retention.tasks`."""
    days = app.loaded.settings.retention.tasks or None if days is None else days
    if days is None:
        raise BadInput(
            "`retention.tasks` is 0, so no task is ever old enough to archive.",
            fix="Give --days N.",
        )
    return write_archive(app.store, file, days=days, prune=prune)


def write_archive(store: Store, file: Path, *, days: float, prune: bool) -> Archived:
    """Write what ended or happened so many days ago. With `prune` it then leaves the store.

    The file is whole and on the disk before anything is removed, and what changed since it was
    written stays.
    """
    history = OldHistory(store, events=days, tasks=days)
    upto = history.last_old()
    tasks: list[Task] = []
    name, opens = _compression(file)
    part = file.with_name(f"{file.name}.part")
    if file.exists():
        raise Refused(f"{file} exists.", fix="Name a new file.")
    try:
        with _new(part) as raw:
            with opens(raw) as lines:
                for task in (task for page in history.old_tasks() for task in page):
                    tasks.append(task)
                    _write(lines, _of_task(store, task))
                events = _write(lines, _events(store, upto))
            raw.flush()
            os.fsync(raw.fileno())
        os.link(part, file)  # unlike a rename, it replaces nothing
        _sync_folder(file.parent)
    except OSError as error:
        raise Unavailable(
            f"{file} cannot be written: {error.strerror}.",
            fix="Name a new file in a directory that you can write to, with enough free space.",
        ) from error
    finally:
        part.unlink(missing_ok=True)
    done = Archived(str(file), file.stat().st_size, name, tuple(task.id for task in tasks), events)
    return replace(done, forgotten=_forget(store, tasks, upto)) if prune else done


def _forget(store: Store, tasks: list[Task], upto: int) -> tuple[str, ...]:
    """Exactly what was written: leaves first, so that nothing refers to the others any more."""
    while upto and store.forget_events(upto=upto, limit=EVENTS_A_ROUND):
        pass
    forgotten: list[str] = []
    while some := store.forget_tasks([task for task in tasks if task.id not in forgotten]):
        forgotten += some
    return tuple(forgotten)


def _of_task(store: Store, task: Task) -> Iterator[tuple[str, Any]]:
    yield "task", task
    yield from (("run", run) for run in store.runs(task.id))
    yield from (("message", message) for message in store.messages(task.id))
    landings = store.landings(LandingQuery(task=task.id, limit=MOST_LANDINGS))
    yield from (("landing", landing) for landing in landings)
    after = 0
    while page := store.events(after=after, task=task.id, limit=EVENTS_A_ROUND):
        yield from (("event", event) for event in page)
        after = page[-1].number


def _events(store: Store, upto: int) -> Iterator[tuple[str, Any]]:
    """The events up to this number; one of a task may be in the file twice, with one number."""
    after = store.first_event() - 1
    while upto and (page := store.events(after=after, before=upto + 1, limit=EVENTS_A_ROUND)):
        yield from (("event", event) for event in page)
        after = page[-1].number


def _write(lines: IO[bytes], records: Iterator[tuple[str, Any]]) -> int:
    count = 0
    for kind, record in records:
        row = {"kind": kind, **changed(record)}
        lines.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        count += 1
    return count


def _compression(file: Path) -> tuple[str, Callable[[IO[bytes]], Any]]:
    """The compression, by the end of the name: `.zst` where Python has it (3.14), else gzip; `.jsonl`: none."""
    if file.suffix == ".jsonl":
        return "none", nullcontext
    if file.suffix == ".zst":
        try:
            from compression import zstd  # type: ignore[import-not-found]  # Python 3.14
        except ImportError:
            raise Refused(
                "This Python cannot write zstd, which Python 3.14 brings.",
                fix=f"Name a file that ends in .gz: {file.with_suffix('.gz').name}",
                code="no_zstd",
            ) from None
        return "zstd", lambda raw: zstd.open(raw, "wb")
    return "gzip", lambda raw: gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0)


def _new(part: Path) -> IO[bytes]:
    """Make the file, readable by its owner alone: it has every prompt and message."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW
    return os.fdopen(os.open(part, flags, 0o600), "wb")


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every file system can
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
