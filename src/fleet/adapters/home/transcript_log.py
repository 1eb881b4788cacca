"""`events.jsonl` of a task: what its agents said, and how each run ended, once each."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import TYPE_CHECKING

from fleet.adapters.home.append import UNKNOWN, AppendLimits, LineFile, Stamp
from fleet.domain.transcript import SaidKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fleet.domain.redaction import Redactor
    from fleet.domain.run import Run, Usage
    from fleet.domain.transcript import Said

NAME = "events.jsonl"
ENDED = "run_ended"
LONGEST_TEXT = 4000  # characters of one text
MARGIN = 300  # characters more are redacted, for a cut could hide the end of a secret
MOST_UNREAD = 5000
AFTER_ALL = 1 << 62


class _RunLog:
    """How far a run's transcript has been written: the last line, and the entry on that line."""

    __slots__ = ("index", "line", "path", "stamp", "unread", "usage", "waiting")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stamp: Stamp = UNKNOWN
        self.line = -1
        self.index = 0
        self.usage: Usage | None = None
        self.unread: list[
            tuple[int, Said]
        ] = []  # entries that came while the file could not be opened
        self.waiting = b""  # lines for which the disk had no room


class SaidLog:
    def __init__(
        self,
        folder: Callable[[str], Path],
        redactor: Redactor,
        stamp: Callable[[], str],
        limits: AppendLimits,
    ) -> None:
        self._limits = limits
        self._folder = folder
        self._redact = redactor.text
        self._stamp = stamp
        self._runs: dict[str, _RunLog] = {}

    def add_to_transcript(self, run: Run, events: Sequence[tuple[int, Said]]) -> None:
        if not events:
            return
        log = self._runs.get(run.id)
        if log is None:
            log = self._runs[run.id] = _RunLog(self._folder(run.task) / NAME)
        log.unread = [*log.unread, *events][-MOST_UNREAD:]
        with LineFile(log.path, log.stamp) as file:
            self._catch_up(file, run.id, log)
            text = self._lines(run.id, log.unread, log)
            log.unread = []
            self._add(file, run.id, log, text)

    def ended(self, run: Run) -> bool:
        """Write how the run ended; return False if the file has that already."""
        outcome = run.outcome
        if outcome is None:
            return False
        log = self._runs.get(run.id) or _RunLog(self._folder(run.task) / NAME)
        with LineFile(log.path, log.stamp) as file:
            self._catch_up(file, run.id, log)
            if is_new := log.line != AFTER_ALL:
                line = {
                    "ts": self._stamp(),
                    "run": run.id,
                    "kind": ENDED,
                    "ending": str(outcome.ending),
                    "detail": self._redact(outcome.detail)[:LONGEST_TEXT],
                    "exit_code": outcome.exit_code,
                }
                text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
                self._add(file, run.id, log, f"{self._rest(run.id, log)}{text}\n")
        self._runs.pop(run.id, None)
        return is_new

    def _rest(self, run_id: str, log: _RunLog) -> str:
        return self._lines(run_id, log.unread, log) if log.unread else ""

    def _catch_up(self, file: LineFile, run_id: str, log: _RunLog) -> None:
        """Read from the file how far it is, if another process wrote to it last."""
        if log.stamp == file.stamp:
            return
        log.stamp = file.stamp
        last = _position(file.last_with(f'"run":"{run_id}"'.encode()))
        log.line, log.index = max((log.line, log.index), last)

    def _add(self, file: LineFile, run_id: str, log: _RunLog, text: str) -> None:
        data = log.waiting + text.encode("utf-8", "replace")
        if not data:
            return
        log.waiting = data if len(data) <= self._limits.waiting else self._gap(run_id, log)
        file.add(data, most=self._limits.file)
        log.waiting = b""
        log.stamp = file.stamp

    def _gap(self, run_id: str, log: _RunLog) -> bytes:
        """Return the line that stands for lines that could neither be written nor buffered."""
        words = "The lines before this one could not be written here; the transcript has them."
        head = f'{{"ts":"{self._stamp()}","run":"{run_id}","line":{log.line}'
        return f'{head},"index":{log.index},"kind":"gap","text":"{words}"}}\n'.encode()

    def _lines(self, run_id: str, events: Sequence[tuple[int, Said]], log: _RunLog) -> str:
        lines: list[str] = []
        head = f'{{"ts":"{self._stamp()}","run":"{run_id}","line":'
        line, index, usage = -1, 0, log.usage
        last = (log.line, log.index)
        for number, item in events:
            index = index + 1 if number == line else 0
            line = number
            same_usage = item.usage is None or item.usage == usage
            usage = item.usage or usage
            if number < last[0] or (number == last[0] and index <= last[1]):
                continue
            if item.kind is SaidKind.REPLY or (item.kind is SaidKind.USAGE and same_usage):
                continue
            rest = "" if same_usage else _usage(item.usage)
            lines.append(f"{head}{number}{self._entry(item, index)}{rest}}}\n")
            log.line, log.index = number, index
        log.usage = usage
        return "".join(lines)

    def _entry(self, item: Said, index: int) -> str:
        parts = f',"index":{index}' if index else ""
        parts += f',"kind":"{item.kind.value}"'
        if item.name:
            parts += f',"name":{encode_basestring(self._redact(item.name[:LONGEST_TEXT]))}'
        if item.text:
            text = (
                item.text if len(item.text) <= LONGEST_TEXT else item.text[: LONGEST_TEXT + MARGIN]
            )
            clean = self._redact(text)
            if len(item.text) > LONGEST_TEXT:
                clean = clean[:LONGEST_TEXT] + "…"
            parts += f',"text":{encode_basestring(clean)}'
        if item.failed:
            parts += ',"failed":true'
        if item.resume_at:
            parts += f',"resume_at":{item.resume_at}'
        return parts


def _position(line: bytes) -> tuple[int, int]:
    """The line of the transcript that this entry is from, and its index on that line."""
    try:
        entry = json.loads(line)
        return (AFTER_ALL, 0) if entry["kind"] == ENDED else (entry["line"], entry.get("index", 0))
    except (ValueError, KeyError, TypeError):  # no line, or a person's edit
        return (-1, 0)


def _usage(usage: Usage | None) -> str:
    if usage is None:
        return ""
    counts = f'"input":{usage.input},"output":{usage.output},"cached":{usage.cached}'
    return f',"usage":{{{counts},"context":{usage.context},"usd":{usage.usd:g}}}'
