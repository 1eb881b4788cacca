"""The audit trail as files: `audit/<number of its first record>.jsonl`, one record on a line.

The oldest file is removed when all together are too large. A record is written before its request
is answered, but not synced to the disk. So it survives a crash of the server, not of the machine.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from fleet.adapters.home.event_log import moment
from fleet.domain.audit import AuditOutcome, AuditQuery, AuditRecord, number_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER = "audit"
FILE_BYTES = 4_000_000  # one is read as a whole
HOUR = 3_600_000_000  # microseconds by which a clock may have been set back


class AuditFiles:
    """`most`: bytes of all files together."""

    def __init__(self, folder: Path, *, most: int = 100_000_000) -> None:
        self._folder = folder
        self._most = min(FILE_BYTES, most // 2)
        self._keep = max(2, most // self._most)
        self._fd = -1
        self._size = self._number = 0

    def add(self, record: AuditRecord) -> None:
        if self._fd < 0 or self._size >= self._most:
            self._open()
        line = _line(record, self._number + 1)
        written = 0
        try:
            written = os.write(self._fd, line)
        finally:
            if written < len(line):
                os.ftruncate(self._fd, self._size)
        if written < len(line):
            raise OSError(f"only {written} of {len(line)} bytes were written")
        self._size += written
        self._number += 1

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        """Open the newest file, or a new one when that is full."""
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        files = self._files()
        if files:
            data = files[-1].read_bytes()
            end = data.rfind(b"\n") + 1  # half a line comes from a server that died
            last = data[data.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end]
            self._number = _number_in(last) or int(files[-1].stem) - 1
            self._size = end
        path = files[-1] if files and self._size < self._most else self._new_file()
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = self._size if files and path == files[-1] else 0
        os.ftruncate(self._fd, self._size)
        for old in self._files()[: -self._keep]:
            old.unlink(missing_ok=True)

    def _new_file(self) -> Path:
        return self._folder / f"{self._number + 1:012d}.jsonl"

    def _files(self) -> list[Path]:
        """Oldest first."""
        return sorted(path for path in self._folder.glob("*.jsonl") if path.stem.isdigit())

    def read(self, query: AuditQuery) -> list[AuditRecord]:
        records: list[AuditRecord] = []
        for line in self._lines(query):
            record = _record(line)
            if record is None:
                continue
            if not query.after and record.at < query.since - HOUR:
                break
            if query.wants(record):
                records.append(record)
            if len(records) >= query.limit:
                break
        return records

    def _lines(self, query: AuditQuery) -> Iterator[bytes]:
        """Return the lines before a record, newest first, or those after one, oldest first."""
        files, needed = self._files(), _needed(query)
        if query.after:
            number = number_of(query.after)
            earlier = [path for path in files[1:] if int(path.stem) <= number + 1]
            for path in files[len(earlier) :]:
                lines = _read(path, needed)
                yield from (line for line in lines if _number_in(line) > number)
            return
        before = number_of(query.before) if query.before else 1 << 62
        for path in reversed(files):
            if int(path.stem) < before:
                lines = _read(path, needed)
                yield from (line for line in reversed(lines) if _number_in(line) < before)


def _needed(query: AuditQuery) -> list[bytes]:
    """Return texts that every wanted line contains, so that few others need decoding."""
    fields = {"actor": query.actor, "team": query.team}
    fields["outcome"] = str(AuditOutcome.REFUSED) if query.refused else ""
    return [b'"%b":%b,' % (k.encode(), msgspec.json.encode(v)) for k, v in fields.items() if v]


def _read(path: Path, needed: list[bytes]) -> list[bytes]:
    """Return the whole lines with these texts; none if the file has been removed meanwhile."""
    with suppress(FileNotFoundError):
        data = path.read_bytes()
        if all(text in data for text in needed):
            lines = data[: data.rfind(b"\n") + 1].splitlines()
            return [line for line in lines if all(text in line for text in needed)]
    return []


def _number_in(line: bytes) -> int:
    """Return the number in `{"id":"a-57",…` without decoding the line; 0: it is damaged."""
    number = line[9 : line.find(b'"', 9)]
    return int(number) if number.isdigit() else 0


def _line(record: AuditRecord, number: int) -> bytes:
    fields: dict[str, Any] = {
        "id": f"a-{number}", "at": moment(record.at), "outcome": record.outcome, "actor": record.actor,
        "role": record.role, "team": record.team, "run": record.run, "token": record.token,
        "address": record.address, "operation": record.operation, "target": record.target,
        "code": record.code, "count": record.count,
    }  # fmt: skip
    return msgspec.json.encode(fields) + b"\n"


def _record(line: bytes) -> AuditRecord | None:
    """Return the record of a line; None if it is damaged."""
    try:
        fields = msgspec.json.decode(line)
        at = datetime.fromisoformat(fields.pop("at"))
        micros = int(at.timestamp()) * 1_000_000 + at.microsecond
        return AuditRecord(**{**fields, "at": micros})
    except (msgspec.DecodeError, ValueError, TypeError, KeyError, AttributeError):
        return None
