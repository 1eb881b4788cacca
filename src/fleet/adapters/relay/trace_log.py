"""One line for each request, in a file of limited size."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.adapters.home.append import UNKNOWN, LineFile, Stamp
from fleet.domain.nodes.trace import written

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.domain.nodes.trace import Trace

MAX_LOG_BYTES = 20_000_000  # bytes, and as many in the older file
WAITING = 5_000  # lines kept in memory while the disk is full
GATHER_SECONDS = 0.1  # lines of this time are written together


class TraceLog:
    """Writes traces to a file; with None as the path it writes nothing.

    A request that no node answered is written before the client gets the error: its run may end at
    once, and the supervisor then looks here for the cause.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._waiting: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._left: Stamp = UNKNOWN

    def add(self, trace: Trace) -> None:
        if self.path is None:
            return
        self._waiting.append(written(trace).encode() + b"\n")
        del self._waiting[:-WAITING]
        if trace.is_fault_of_nodes:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_SECONDS, self.flush)

    def unwritten(self, run: str, agent: str) -> bytes:
        """The newest line of the run that could not be written, or nothing."""
        from fleet.domain.nodes.trace import read  # noqa: PLC0415  # only after a failure

        names = (run.encode(), agent.encode())
        for line in reversed(self._waiting):
            if any(name in line for name in names):  # parse only lines that may be of this run
                trace = read(line)
                if trace is not None and trace.is_of(run, agent):
                    return line
        return b""

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting or self.path is None:
            return
        with suppress(OSError), LineFile(self.path, self._left) as lines:
            lines.add(b"".join(self._waiting), most=MAX_LOG_BYTES)
            self._left = lines.stamp
            self._waiting.clear()
