"""`log.jsonl` of a task, and the supervisor's log of the day: events as lines, once each."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.append import OLDER, UNKNOWN, AppendLimits, LineFile, Stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from fleet.domain.event import Event
    from fleet.domain.redaction import Redactor
    from fleet.ports import Store

NAME = "log.jsonl"
MOST_TASKS = 4096  # tasks whose last event is remembered; for others the file is searched
PAGE = 1000
KEEP_DAYS, KEEP_FILES = 14, 50
DAY = re.compile(r"fleet-(\d{4}-\d\d-\d\d)\.jsonl(\.1)?")


def moment(at: int) -> str:
    """Return a time as in 2026-01-31T17:05:00.123456Z."""
    seconds, micros = divmod(at, 1_000_000)
    return f"{_second(seconds)}.{micros:06d}Z"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def as_line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"


class TaskLog:
    """Writes `log.jsonl`, with events from before this process started read from the store."""

    def __init__(
        self, folder: Callable[[str], Path], store: Store, redactor: Redactor, limits: AppendLimits
    ) -> None:
        self._limits = limits
        self._folder = folder
        self._store = store
        self._redactor = redactor
        self._known: dict[str, tuple[Stamp, int]] = {}

    def note(self, event: Event) -> None:
        stamp, last = self._known.pop(event.task, (UNKNOWN, 0))
        with LineFile(self._folder(event.task) / NAME, stamp) as file:
            events: Iterable[Event] = (event,)
            if stamp != file.stamp:
                last = last_number(file)
                events = self._since(event.task, last, until=event)
            self._add(file, event.task, last, events)

    def catch_up(self, task_id: str) -> None:
        """Add all events of a task that the store has and the file lacks."""
        with LineFile(self._folder(task_id) / NAME) as file:
            last = last_number(file)
            self._add(file, task_id, last, self._since(task_id, last))

    def _since(self, task_id: str, last: int, until: Event | None = None) -> list[Event]:
        events: list[Event] = []
        while True:
            page = self._store.events(after=last, task=task_id, limit=PAGE)
            events += [e for e in page if until is None or e.number < until.number]
            if len(page) < PAGE:
                return [*events, until] if until else events
            last = page[-1].number

    def _add(self, file: LineFile, task_id: str, last: int, events: Iterable[Event]) -> None:
        new = [event for event in events if event.number > last]
        if new:
            text = "".join(as_line(entry(event, self._redactor, with_task=False)) for event in new)
            file.add(text.encode("utf-8", "replace"), most=self._limits.file)
            last = new[-1].number
        self._known[task_id] = (file.stamp, last)
        if len(self._known) > MOST_TASKS:
            del self._known[next(iter(self._known))]


def entry(event: Event, redactor: Redactor, *, with_task: bool = True) -> dict[str, Any]:
    """Return an event as a record for a log. `with_task`: include the task's id."""
    record: dict[str, Any] = {"number": event.number} if event.number else {}
    record |= {"at": moment(event.at), "type": event.type}
    if with_task:
        record["task"] = event.task
    return record | {
        "run": event.run,
        "actor": event.actor,
        "data": redactor.value(event.data),
    }


def last_number(file: LineFile) -> int:
    """Return the number of the last event in the file; 0 when there is none."""
    try:
        return int(json.loads(file.last_with(b'{"number":'))["number"])
    except (ValueError, KeyError, TypeError):
        return 0


class DayLog:
    """`logs/fleet-2026-01-31.jsonl` (UTC): one line for every event and every warning."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        redactor: Redactor,
        now: Callable[[], int],
        limits: AppendLimits,
    ) -> None:
        self._limits = limits
        self._folder = folder
        self._store = store
        self._redactor = redactor
        self._now = now
        self._last = -1
        self._today = ""

    def note(self, event: Event) -> None:
        """Add an event; the first call also adds those that no process has logged."""
        if not event.number:  # from the supervisor itself, and not in the store
            self._add(as_line(entry(event, self._redactor)))
            return
        missed = self._missed(event) if self._last < 0 else []
        new = [e for e in (*missed, event) if e.number > self._last]
        if new:
            self._add("".join(as_line(entry(e, self._redactor)) for e in new))
            self._last = max(self._last, new[-1].number)

    def warn(self, text: str) -> None:
        words = self._redactor.text(text)
        self._add(as_line({"at": moment(self._now()), "type": "warning", "text": words}))

    def _missed(self, event: Event) -> list[Event]:
        self._last = self._noted()
        after = max(self._last, event.number - PAGE)
        return [e for e in self._store.events(after=after, limit=PAGE) if e.number < event.number]

    def _noted(self) -> int:
        for path in self._days()[:3]:
            with LineFile(path) as file:
                if number := last_number(file):
                    return number
        return 0

    def _days(self) -> list[Path]:
        """The files of this log, newest first."""
        try:
            files = [p for p in self._folder.iterdir() if DAY.fullmatch(p.name)]
        except FileNotFoundError:
            return []
        return sorted(files, key=lambda p: (p.name[:16], not p.name.endswith(OLDER)), reverse=True)

    def _add(self, text: str) -> None:
        today = moment(self._now())[:10]
        with LineFile(self._folder / f"fleet-{today}.jsonl") as file:
            file.add(text.encode("utf-8", "replace"), most=self._limits.day)
        if today != self._today:
            self._today = today
            self._tidy(date.fromisoformat(today))

    def _tidy(self, today: date) -> None:
        oldest = (today - timedelta(days=KEEP_DAYS)).isoformat()
        for index, path in enumerate(self._days()):
            if index >= KEEP_FILES or path.name[6:16] < oldest:
                path.unlink(missing_ok=True)
