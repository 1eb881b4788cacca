"""Read and follow the traces of a home, and the lines of any log."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fleet.domain.nodes.trace import Trace, TraceFilter, chosen, since

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleet.adapters.home.tail import Tail

FILE = "traces.jsonl"
TORN = 100  # more lines than wanted that are read, as some may not be traces


def traces_of(home: Path) -> Path:
    return home / "logs" / FILE


def gateway_runs(home: Path) -> bool:
    """Whether a gateway that was started in this home runs."""
    from fleet.adapters.processes.background import ServiceRecord, is_alive, read_record

    files = (home / "gateway").glob("*/gateway.json")
    records = [read_record(file, ServiceRecord) for file in files]
    return any(record and is_alive(record.pid, record.born) for record in records)


def wanted(agent: str, node: str, moment: str, project: str = "") -> TraceFilter:
    """Return the filter; raise `BadInput` when `moment` is not a time."""
    now = datetime.now(UTC).astimezone()
    return TraceFilter(agent, node, since(moment, now) if moment else 0, project)


def last_traces(path: Path, wanted: TraceFilter, most: int) -> list[Trace]:
    from fleet.adapters.home.tail import Tail

    tail = Tail(path)
    try:
        return list(_last(tail, wanted, most))
    finally:
        tail.close()


def coming_traces(path: Path, wanted: TraceFilter, most: int) -> Iterator[Trace]:
    """Return the last `most` of the wanted traces, then new ones for ever."""
    from fleet.adapters.home.tail import Tail

    tail = Tail(path)
    try:
        yield from _last(tail, wanted, most)
        yield from chosen(tail.follow(), wanted)
    finally:
        tail.close()


def _last(tail: Tail, wanted: TraceFilter, most: int) -> deque[Trace]:
    lines = tail.past()
    if wanted == TraceFilter():  # without a filter only the end of the file is parsed
        lines = iter(deque(lines, maxlen=most + TORN))
    return deque(chosen(lines, wanted), maxlen=most)


def last_lines(path: Path, most: int) -> list[str]:
    from fleet.adapters.home.tail import Tail

    tail = Tail(path)
    try:
        return [_text(line) for line in deque(tail.past(), maxlen=most)]
    finally:
        tail.close()


def coming_lines(path: Path, most: int) -> Iterator[str]:
    from fleet.adapters.home.tail import Tail

    tail = Tail(path)
    try:
        yield from (_text(line) for line in deque(tail.past(), maxlen=most))
        yield from map(_text, tail.follow())
    finally:
        tail.close()


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
