"""Spans of the tasks and runs of this host, and of its requests, for the collectors of its projects."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.app.compute.traces import traces_of
from fleet.domain.errors import FleetError, NotFound
from fleet.domain.event import Kind
from fleet.domain.nodes.spans import of_request, of_run, of_task
from fleet.domain.nodes.trace import read
from fleet.domain.task import ENDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.adapters.home.tail import Tail
    from fleet.adapters.otel.export import Exporter
    from fleet.app.app import App
    from fleet.domain.event import Event
    from fleet.domain.nodes.spans import TraceSpan
    from fleet.domain.nodes.trace import Trace
    from fleet.domain.task import Task

ENDS = frozenset({Kind.TASK_SETTLED, Kind.TASK_CLOSED, Kind.TASK_CANCELLED})
CLOSE_SECONDS = 5.0  # seconds for what waits when the supervisor ends


class Telemetry:
    """Sends spans; it reads and imports nothing for a project without `observability.otlp`."""

    def __init__(self, app: App, warn: Callable[[str], None]) -> None:
        self._app, self._warn = app, warn
        self._exporters: dict[tuple[str, str], Exporter | None] = {}
        self._tail: Tail | None = None

    def after(self, tell: Callable[[Event], None]) -> Callable[[Event], None]:
        """Return an event handler that calls `tell`, then sends the span that the event ends."""

        def both(event: Event) -> None:
            tell(event)
            self.event(event)

        return both

    def event(self, event: Event) -> None:
        """Send the span of the run or task that this event ends."""
        if event.type == Kind.RUN_ENDED:
            run = self._app.store.run(event.run)
            if run.host == self._app.home.host_id():
                task = self._app.store.task(run.task)
                self._put(task.project, lambda: of_run(task, run))
        elif event.type in ENDS:
            task = self._app.store.task(event.task)
            if task.state in ENDED and self._is_ours(task):
                self._put(task.project, lambda: of_task(task))

    def step(self) -> None:
        """Look for requests that have ended."""
        from fleet.adapters.home.tail import Tail

        if self._tail is None:
            self._tail = Tail(traces_of(self._app.home.path))
            self._tail.skip()
        for line in self._tail.new():
            if trace := read(line):
                self._request(trace)

    def close(self) -> None:
        self.step()
        for exporter in self._exporters.values():
            if exporter is not None:
                exporter.close(CLOSE_SECONDS)
        if self._tail is not None:
            self._tail.close()

    def _request(self, trace: Trace) -> None:
        task: Task | None = None
        if trace.source.run:
            with suppress(NotFound):
                task = self._app.store.task(trace.source.run.rpartition(".")[0])
        project = task.project if task else trace.source.project
        self._put(project, lambda: of_request(trace, task))

    def _is_ours(self, task: Task) -> bool:
        if not task.run_id:
            return not self._app.shared
        return self._app.store.run(task.run_id).host == self._app.home.host_id()

    def _put(self, project: str, span: Callable[[], TraceSpan]) -> None:
        try:
            otlp = self._app.worlds(project).fleet.otlp
        except FleetError:  # its settings are wrong; the supervisor says so
            return
        if otlp.address and (exporter := self._exporter(*otlp, project)) is not None:
            exporter.put(span())

    def _exporter(self, address: str, headers: str, project: str) -> Exporter | None:
        key = (address, headers)
        if key not in self._exporters:
            try:
                self._exporters[key] = self._made(address, headers, project)
            except FleetError as error:
                self._exporters[key] = None
                self._warn(f"Traces are not sent: {error.message} {error.fix}".strip())
        return self._exporters[key]

    def _made(self, address: str, headers: str, project: str) -> Exporter:
        from fleet.adapters.nodes.key import FROM_ENV, key_of
        from fleet.adapters.otel.export import Collector, Exporter

        env, base = self._app.env, self._app.folder_of(self._app.worlds(project))
        named = address.startswith(FROM_ENV)
        url = key_of(address, env, base) if named else address
        collector = Collector(url, key_of(headers, env, base))
        return Exporter(collector, self._app.home.host_id(), self._warn)
