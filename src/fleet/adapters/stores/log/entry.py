"""One entry of the log: the writes of one transaction, as any version of fleet can read them."""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Any

from fleet.adapters.stores import forgetting, transfer
from fleet.adapters.stores.codec import decode, encode
from fleet.adapters.stores.rows import TABLES
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadStore
from fleet.domain.event import Event
from fleet.domain.record_json import changed, reader
from fleet.ports import Put, Same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.ports import Change

FORMAT = 2
FIRST_FORMAT = 1  # of entries that every release reads: what came later is only in some
KINDS: dict[str, Any] = {table: kind for kind, table in TABLES.items()}


class LogCommit(NamedTuple):
    changes: Sequence[Change]
    events: Sequence[Event]


class Prune(NamedTuple):
    kind: str
    team: str
    now: int


Step = LogCommit | Prune | transfer.Step | forgetting.Step
LATER: dict[str, Any] = {
    "events": forgetting.DropEvents,
    "tasks": forgetting.DropTasks,
    "begin": transfer.Begin,
    "load": transfer.Load,
    "recount": transfer.Recount,
    "finish": transfer.Finish,
}


class LogRecord(NamedTuple):
    """`ids`: by kind, the last id that was given."""

    steps: Sequence[Step] = ()
    ids: dict[str, int] = {}  # noqa: RUF012  # never changed
    blob: str = ""  # the name of the blob that has the rest


def pack(entry: LogRecord) -> bytes:
    """Two packings of the same entry differ, so that a writer knows its own again."""
    is_old = all(isinstance(step, LogCommit | Prune) for step in entry.steps)
    data = {
        "format": FIRST_FORMAT if is_old else FORMAT,
        "mark": os.urandom(16).hex(),
        "steps": [_step(step) for step in entry.steps],
        "ids": entry.ids,
        "blob": entry.blob,
    }
    return zlib.compress(json.dumps(data, separators=(",", ":")).encode())


def unpack(packed: bytes) -> LogRecord:
    try:
        data = json.loads(zlib.decompress(packed))
        if data["format"] > FORMAT:
            raise BadStore(
                f"The log was written by a newer fleet (format {data['format']}).",
                fix="Upgrade fleet on this machine.",
            )
        return LogRecord([_read_step(step) for step in data["steps"]], data["ids"], data["blob"])
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise BadStore(
            f"The log has an entry that this version of fleet cannot read ({error}).",
            fix="If a newer fleet wrote it, upgrade fleet on this machine.",
        ) from error


def _step(step: Step) -> dict[str, Any]:
    if isinstance(step, Prune):
        return {"prune": list(step)}
    if not isinstance(step, LogCommit):
        name = next(name for name, kind in LATER.items() if isinstance(step, kind))
        return {"later": name, "given": list(step)}
    return {
        "changes": [_change(change) for change in step.changes],
        "events": [changed(event) for event in step.events],
    }


def _change(change: Change) -> list[Any]:
    record = change.record
    how = "put" if isinstance(change, Put) else "same"
    return [how, TABLES[type(record)], record.version, encode(record)]


def _read_step(step: dict[str, Any]) -> Step:
    if "prune" in step:
        return Prune(*step["prune"])
    if "later" in step:
        made: Step = LATER[step["later"]](*step["given"])
        return made
    read_event = reader(Event, strict=True)
    return LogCommit(
        [_read_change(*change) for change in step["changes"]],
        [read_event(event) for event in step["events"]],
    )


def _read_change(how: str, table: str, version: int, body: str) -> Change:
    record = decode(KINDS[table], version, body)
    return Put(record) if how == "put" else Same(record)
