"""`task.json`: a copy of what the store knows of a task, and a place to say otherwise.

Of a person's edits `cwd`, `coder` and `model` count, and they count once, at the next claim. What
the file says beside `recorded` is what we wrote there, so that an edit is told from an old copy.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.append import locked
from fleet.adapters.home.event_log import moment
from fleet.base.files import read_regular, write_atomically
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, FleetError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.redaction import Redactor
    from fleet.domain.task import Spec, Task

NAME = "task.json"
EDITABLE = ("cwd", "coder", "model")
MAX_FILE_BYTES = 4_000_000
MOST_TASKS = 4096
UNDO = "Mend it, or delete the file: then nothing is changed."


class _Read(NamedTuple):
    """A file as it was read; for a task that asks for `same` nothing is edited in it."""

    path: str
    stamp: tuple[int, ...]
    fields: dict[str, Any]
    same: Spec | None = None


class TaskJson:
    """`coder` raises `FleetError` for one that cannot be run."""

    def __init__(
        self, folder: Callable[[str], Path], redactor: Redactor, coder: Callable[[str], object]
    ) -> None:
        self._folder = folder
        self._redactor = redactor
        self._coder = coder
        self._read: dict[str, _Read] = {}

    def write(self, task: Task) -> None:
        """What a person has written meanwhile stays, to be taken in at the next claim."""
        folder = self._folder(task.id)
        with locked(folder), suppress(BadInput):  # nor is half an edit of theirs written over
            found = _loaded(folder / NAME)
            fields = self._fields(task) | _edits(found, task)
            if fields != found:
                text = json.dumps(fields, ensure_ascii=False, indent=2) + "\n"
                # A copy of what the store has, so it need not outlive a power cut.
                write_atomically(folder / NAME, text, durable=False)

    def _fields(self, task: Task) -> dict[str, Any]:
        clean, spec = self._redactor.text, task.spec
        recorded: dict[str, Any] = {name: getattr(spec, name) or None for name in EDITABLE}
        return {
            "format": 1,
            "id": task.id,
            "title": clean(task.title),
            "description": clean(task.prompt),
            "status": str(task.state),
            **recorded,
            "agent": spec.agent or None,
            "priority": spec.priority,
            "labels": list(spec.labels),
            "depends_on": list(task.after),
            "parent": task.parent or None,
            "project": task.project,
            "team": task.team,
            "author": task.author,
            "created_at": moment(task.created_at),
            "run": task.run_id or None,
            "recorded": recorded,
        }

    def edited(self, task: Task) -> Spec:
        """One look at the file when nothing has changed."""
        held = self._read.get(task.id)
        path = held.path if held else str(self._folder(task.id) / NAME)
        try:
            found = os.stat(path)  # noqa: PTH116  # half the price, for every candidate
        except OSError:
            return task.spec
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if held is None or held.stamp != stamp:
            held = self._keep(task.id, _Read(path, stamp, _loaded(Path(path))))
        elif held.same == task.spec:
            return task.spec
        edits = _edits(held.fields, task)
        if not edits:
            self._keep(task.id, held._replace(same=task.spec))
            return task.spec
        return replace(task.spec, **self._checked(path, edits))

    def _keep(self, task_id: str, read: _Read) -> _Read:
        self._read[task_id] = read
        if len(self._read) > MOST_TASKS:
            del self._read[next(iter(self._read))]
        return read

    def _checked(self, path: str, edits: dict[str, Any]) -> dict[str, Any]:
        for name, value in edits.items():
            if value is not None and (not isinstance(value, str) or _unprintable(value)):
                raise BadInput(f"{path}: {name} must be one line of text.", fix=UNDO)
        wanted = {name: (value or "").strip() for name, value in edits.items()}
        if "cwd" in wanted and not _is_folder(wanted["cwd"]):
            named = wanted["cwd"] or "nothing"
            raise BadInput(f"{path}: cwd is {named}, which is not an absolute path.", fix=UNDO)
        if wanted.get("coder"):
            try:
                self._coder(wanted["coder"])
            except FleetError as error:
                fix = f"{error.fix} {UNDO}".strip()
                raise BadInput(f"{path}: {error.message}", fix=fix) from error
        return wanted


def _loaded(path: Path) -> dict[str, Any]:
    """Nothing, when it is not there or empty: a power cut may leave that."""
    try:
        data = read_regular(path, most=MAX_FILE_BYTES)
        found = json.loads(data) if data.strip() else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} cannot be read: {error}.", fix=UNDO) from error
    if not isinstance(found, dict):
        raise BadInput(f"{path} is not a JSON object.", fix=UNDO)
    return found


def _edits(found: dict[str, Any], task: Task) -> dict[str, Any]:
    """What differs from what we wrote, and from what the task has."""
    now = {name: getattr(task.spec, name) or None for name in EDITABLE}
    recorded = found.get("recorded")
    before = now | recorded if isinstance(recorded, dict) else now
    return {
        name: found[name]
        for name in EDITABLE
        if name in found
        and (found[name] or None) != before[name]
        and (found[name] or None) != now[name]
    }


def _unprintable(value: str) -> bool:
    return not value.isprintable() and bool(value)


def _is_folder(name: str) -> bool:
    return Path(name).is_absolute() and Path(name).is_dir()
