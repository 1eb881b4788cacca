"""`task.json`: a copy of a task in the store, which a person may edit.

Edits of `cwd`, `coder` and `model` take effect once, at the next claim. `recorded` in the file has
the values that fleet wrote, which tells an edit from an old copy.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.append import locked
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
UNDO = "Correct the file, or delete it to keep the task as it is."


class _Read(NamedTuple):
    """A file as it was read. `same`: the spec with which it contains no edit."""

    path: str
    stamp: tuple[int, ...]
    fields: dict[str, Any]
    same: Spec | None = None


class TaskJson:
    """Reads and writes `task.json`. `coder` raises `FleetError` for a coder that cannot run."""

    def __init__(
        self, folder: Callable[[str], Path], redactor: Redactor, coder: Callable[[str], object]
    ) -> None:
        self._folder = folder
        self._redactor = redactor
        self._coder = coder
        self._read: dict[str, _Read] = {}

    def write(self, task: Task) -> None:
        """Write a task, keeping a person's edits in the file for the next claim."""
        folder = self._folder(task.id)
        with locked(folder), suppress(BadInput):  # an edit that is not valid JSON yet stays, too
            written = _loaded(folder / NAME)
            fields = self._fields(task) | _edits(written, task)
            if fields != written:
                text = _indented(fields) + "\n"
                # A copy of what the store has, so it need not outlive a power cut.
                write_atomically(folder / NAME, text, durable=False)

    def _fields(self, task: Task) -> dict[str, Any]:
        from fleet.adapters.home.event_log import moment  # noqa: PLC0415  # start-up time

        clean, spec, recorded = self._redactor.text, task.spec, _recorded(task)
        return {
            "format": 1,
            "id": task.id,
            "title": clean(task.title),
            "description": clean(task.prompt),
            "status": str(task.state),
            **recorded,
            "agent": spec.agent or (task.choice.agent if task.choice else None),
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
        """Return the spec with a person's edits; costs one `stat` if the file is unchanged."""
        read = self._read.get(task.id)
        path = read.path if read else str(self._folder(task.id) / NAME)
        try:
            stat = os.stat(path)  # noqa: PTH116  # half the price, for every candidate
        except OSError:
            return task.spec
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if read is None or read.stamp != stamp:
            read = self._keep(task.id, _Read(path, stamp, _loaded(Path(path))))
        elif read.same == task.spec:
            return task.spec
        edits = _edits(read.fields, task)
        if not edits:
            self._keep(task.id, read._replace(same=task.spec))
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
        values = {name: (value or "").strip() for name, value in edits.items()}
        if "cwd" in values and not _is_folder(values["cwd"]):
            cwd = values["cwd"] or "nothing"
            raise BadInput(f"{path}: cwd is {cwd}, which is not an absolute path.", fix=UNDO)
        if values.get("coder"):
            try:
                self._coder(values["coder"])
            except FleetError as error:
                fix = f"{error.fix} {UNDO}".strip()
                raise BadInput(f"{path}: {error.message}", fix=fix) from error
        return values


_encode = json.JSONEncoder(ensure_ascii=False).encode


def _indented(fields: dict[str, Any], margin: str = "") -> str:
    """Write like `json.dumps(indent=2)`, which has no C implementation; lists are on one line."""
    inner = margin + "  "
    parts = [
        f"{inner}{_encode(name)}: {_indented(value, inner) if isinstance(value, dict) and value else _encode(value)}"
        for name, value in fields.items()
    ]
    return "{\n" + ",\n".join(parts) + f"\n{margin}}}"


def _loaded(path: Path) -> dict[str, Any]:
    """Return the fields in the file; none if it is missing or, after a power cut, empty."""
    try:
        data = read_regular(path, most=MAX_FILE_BYTES)
        fields = json.loads(data) if data.strip() else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} cannot be read: {error}.", fix=UNDO) from error
    if not isinstance(fields, dict):
        raise BadInput(f"{path} is not a JSON object.", fix=UNDO)
    return fields


def _recorded(task: Task) -> dict[str, Any]:
    """Return the editable fields as the task requests them or, if it does not, as chosen."""
    wanted = {name: getattr(task.spec, name) for name in EDITABLE}
    return {name: wanted[name] or getattr(task.choice, name, "") or None for name in EDITABLE}


def _edits(fields: dict[str, Any], task: Task) -> dict[str, Any]:
    """Return the fields that a person changed: other than Fleet wrote and than the task has."""
    current = _recorded(task)
    recorded = fields.get("recorded")
    before = current | recorded if isinstance(recorded, dict) else current
    return {
        name: fields[name]
        for name in EDITABLE
        if name in fields
        and (fields[name] or None) != before[name]
        and (fields[name] or None) != current[name]
    }


def _unprintable(value: str) -> bool:
    return not value.isprintable() and bool(value)


def _is_folder(name: str) -> bool:
    return Path(name).is_absolute() and Path(name).is_dir()
