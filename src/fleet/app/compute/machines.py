"""The nodes, the gateway and the traces of this machine, for operations."""

from __future__ import annotations

import os
import threading
import time
from itertools import islice
from typing import TYPE_CHECKING

from fleet.app.compute.gateway import Services
from fleet.app.compute.nodes import Compute
from fleet.app.compute.traces import traces_of
from fleet.domain.nodes.trace import read
from fleet.ports import GatewaySeen, NodesSeen, ServiceSeen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fleet.adapters.evals.kept import Evaluations
    from fleet.adapters.nodes.warm_up import Warming
    from fleet.app.app import App
    from fleet.domain.evals.result import Evaluation
    from fleet.domain.fleet import Fleet, Serving
    from fleet.domain.nodes.inventory import Warmth
    from fleet.domain.nodes.trace import Trace, TraceFilter

FRESH = 1.5  # seconds for which a look at the nodes is reused
WITHIN = 1.5  # seconds for all nodes together
TAIL = 2 << 20  # bytes of the traces' file that one request reads
LATE = 5_000_000  # microseconds by which lines of the traces may be out of order
LOG_TAIL = 256 << 10  # bytes of LiteLLM's log


class Glance:
    """Shared by the copies of one app: the last look at the nodes, and the last warm-up."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.looked = 0.0
        self.seen: NodesSeen | None = None
        self.warming: Warming | None = None


class HostMachines:
    def __init__(self, app: App) -> None:
        self._app, self._glance = app, app.glance
        self._compute = Compute(app)

    @property
    def fleet(self) -> Fleet:
        return self._app.loaded.fleet

    def look(self) -> NodesSeen:
        glance = self._glance
        with glance.lock:
            if glance.seen is None or time.monotonic() - glance.looked > FRESH:
                glance.seen = self._look()
                glance.looked = time.monotonic()
            return glance.seen

    def _look(self) -> NodesSeen:
        at = time.time_ns() // 1000
        if not self.fleet.nodes:
            return NodesSeen(at, ())
        seen, relay = self._compute.look_around(within=WITHIN)
        return NodesSeen(at, tuple(seen), relay)

    def warm(self, wanted: Sequence[tuple[str, Serving]]) -> None:
        glance = self._glance
        with glance.lock:
            busy = () if glance.warming is None else _busy(glance.warming)
            new = [(m, s) for m, s in wanted if (s.node.name, s.upstream) not in busy]
            if new:
                glance.warming = self._compute.warm(new)
                glance.seen = None

    def warming(self) -> tuple[Warmth, ...]:
        warming = self._glance.warming
        return tuple(warming.rows()) if warming is not None else ()

    def traces(self, wanted: TraceFilter, *, after: int, limit: int) -> list[Trace]:
        newest: list[Trace] = []
        for line in _last_lines(traces_of(self._app.home.path), TAIL):
            trace = read(line)
            if trace is None:
                continue
            if trace.ended_at < after - LATE or len(newest) == limit:
                break
            if trace.ended_at > after and wanted.takes(trace):
                newest.append(trace)
        return newest[::-1]

    @property
    def _services(self) -> Services:
        return Services(self.fleet, self._app.home.path, self._app.settings_folder)

    def gateway(self) -> GatewaySeen:
        services = self._services
        seen = [
            ServiceSeen(
                each.name,
                each.record is not None,
                each.answers,
                each.port,
                each.record.started_at if each.record else 0,
                each.record.restarts if each.record else 0,
            )
            for each in services.look()
        ]
        version = services.environment.version() or ""
        return GatewaySeen(services.url(), version, tuple(seen), services.stale())

    def gateway_log(self, *, limit: int) -> list[str]:
        lines = _last_lines(self._services.gateway.log, LOG_TAIL)
        newest = [
            line.decode("utf-8", "replace") for line, _ in zip(lines, range(limit), strict=False)
        ]
        return newest[::-1]

    def evals(self, *, limit: int) -> list[Evaluation]:
        return list(islice(self._evals.newest(), limit))

    def evaluation(self, evaluation_id: str) -> Evaluation | None:
        return self._evals.find(evaluation_id)

    @property
    def _evals(self) -> Evaluations:
        from fleet.adapters.evals.kept import Evaluations

        return Evaluations(self._app.home.path)


def _busy(warming: Warming) -> set[tuple[str, str]]:
    going = {"waiting", "loading"}
    return {(row.node, row.upstream) for row in warming.rows() if row.state in going}


def _last_lines(path: Path, most: int) -> Iterator[bytes]:
    """Return the whole lines in the last `most` bytes of a file, newest first."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            lines = file.read(most).split(b"\n")
    except OSError:
        return
    yield from reversed(lines[1 if size > most else 0 : -1])
