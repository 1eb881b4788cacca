"""A record of the supervisor's log as one line for a person."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.human import SECOND, clock
from fleet.cli.terminal.measure import fit, harmless

if TYPE_CHECKING:
    from collections.abc import Mapping


def readable(line: str, room: int) -> str:
    """When, about which run or task, and what; a line that is no record is shown as it is."""
    try:
        record = json.loads(line)
        at = int(datetime.fromisoformat(record["at"]).timestamp() * SECOND)
        about, kind = record.get("run") or record.get("task") or "", record["type"]
        text = record.get("text") or words_of(record.get("data") or {})
        fact = fact_line(at, about, kind, text)
    except (ValueError, KeyError, TypeError, AttributeError):
        return line
    return fit(harmless(fact), room)


def fact_line(at: int, about: str, kind: str, text: str) -> str:
    return f"{clock(at)} {about:<8} {kind} {text}".rstrip()


def words_of(data: Mapping[str, Any]) -> str:
    """The text of an event on one line."""
    return " ".join(" ".join(str(value) for value in data.values() if value).split())
