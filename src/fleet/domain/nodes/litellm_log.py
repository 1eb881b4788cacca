"""Read a line that LiteLLM printed, as JSON or plain text: its time, level and message."""

from __future__ import annotations

import json
import re

from fleet.domain.data import NamedTuple

# `INFO:     127.0.0.1:5 - "POST /v1/messages HTTP/1.1" 200 OK`, in either of its two forms.
ANSWERED = re.compile(r'"[A-Z]+ \S+ HTTP/[\d.]+" (\d{3})\b')
# `14:57:19 - LiteLLM Proxy:ERROR: proxy_server.py:1 - …`, and `WARNING: …` at the beginning.
LEVEL = re.compile(r"\b(DEBUG|INFO|WARNING|ERROR|CRITICAL)\b(?=\s*:)")
# Terminal escape sequences.
MARKUP = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
GRAVE = {"DEBUG": "quiet", "INFO": "plain", "WARNING": "warning", "ERROR": "error"}


class LogEntry(NamedTuple):
    """`grave`: quiet, plain, good, warning or error."""

    grave: str
    text: str
    at: str = ""
    level: str = ""
    detail: str = ""  # a traceback


def read(line: str) -> LogEntry:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or "message" not in record:
        text = MARKUP.sub("", line)
        match = LEVEL.search(text)
        return LogEntry(_grave(match[1] if match else "", text), text)
    level = str(record.get("level") or "").upper()
    text = MARKUP.sub("", str(record["message"]))
    detail = MARKUP.sub("", str(record.get("stacktrace") or ""))
    at = str(record.get("timestamp") or "")[11:19]
    return LogEntry(_grave(level, text), text, at, level, detail)


def display_text(entry: LogEntry) -> str:
    """The record as one line, and its traceback below."""
    head = " ".join(part for part in (entry.at, entry.level, entry.text) if part)
    return "\n    ".join([head, *entry.detail.splitlines()])


def _grave(level: str, text: str) -> str:
    if answered := ANSWERED.search(text):
        status = int(answered[1])
        worse = "error" if status >= 500 else "warning"
        return worse if status >= 400 else "good"
    return GRAVE.get(level, "error" if level == "CRITICAL" else "plain")
