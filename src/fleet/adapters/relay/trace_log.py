"""One JSON line for each request, in a file of limited size. No prompt, no reply, no key."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.append import UNKNOWN, Lines, Stamp

if TYPE_CHECKING:
    from pathlib import Path

MOST = 20_000_000  # bytes, and as many in the older file
WAITING = 5_000  # lines, while the disk is full
PAUSE = 0.1  # seconds in which lines are gathered


@dataclass(slots=True)
class Trace:
    """Times in seconds, `at` in UTC microseconds. `outcome`: ok, cancelled, failed or refused."""

    at: int
    agent: str
    session: str
    model: str
    wire: str
    node: str = ""
    upstream: str = ""
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    wait: float = 0.0
    ttft: float = 0.0
    total: float = 0.0
    cost: float | None = None  # in dollars; None: the node does not say it
    retries: int = 0
    outcome: str = "failed"
    status: int = 0
    why: dict[str, Any] = field(default_factory=dict)  # the estimates, and what went wrong


FIELDS = tuple(each.name for each in fields(Trace))


class TraceLog:
    """None as its path writes nothing."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._waiting: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._left: Stamp = UNKNOWN

    def add(self, trace: Trace) -> None:
        if self.path is None:
            return
        found = ((name, getattr(trace, name)) for name in FIELDS)
        held = {name: round(v, 6) if isinstance(v, float) else v for name, v in found}
        self._waiting.append(json.dumps(held, ensure_ascii=False).encode() + b"\n")
        del self._waiting[:-WAITING]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self.flush)

    def flush(self) -> None:
        self._timer = None
        if not self._waiting or self.path is None:
            return
        with suppress(OSError), Lines(self.path, self._left) as lines:
            lines.add(b"".join(self._waiting), most=MOST)
            self._left = lines.stamp
            self._waiting.clear()
