"""Keep the gateways and relays of a home alive: whatever was started and not stopped runs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.relay.plan import read_plan
from fleet.app.compute.gateway import READY, RELAY_READY, Services
from fleet.base import machine
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleet.adapters.processes.background import ServiceRecord
    from fleet.supervisor.loop import LoopHooks

LOOK_SECONDS = 0.5  # seconds between looks
SILENT = 60.0  # seconds without an answer after which a service that has answered is ended
FIRST_PAUSE, LAST_PAUSE = 1.0, 60.0  # seconds between restarts; each doubles the pause
STABLE = 120.0  # seconds of uptime after which the pauses start anew
START = {"relay": RELAY_READY, "gateway": READY}  # seconds for a started service to answer


class NodeNews(NamedTuple):
    """News of a service. `trouble`: what is wrong; empty when it answers again."""

    about: str
    text: str
    trouble: str = ""


class _WatchedService:
    """One relay or gateway."""

    def __init__(self, name: str, services: Services, tell: Callable[[NodeNews], None]) -> None:
        self._name, self._tell = name, tell
        self.services = services
        self._deaths = 0
        self._next = 0.0
        self._answered_at = 0.0
        self._launched_at = 0.0
        self._pid = 0
        self._seen_at = 0.0

    @property
    def _about(self) -> str:
        return f"{self._name} {self.services.port}"

    def look(self, now: float) -> None:
        service = self.services.relay if self._name == "relay" else self.services.gateway
        record = service.record()
        if record is None:
            self._deaths, self._answered_at = 0, 0.0
        elif not service.running():
            self._revive(record, now)
        elif record.pid != self._pid:  # a new process
            self._pid, self._seen_at, self._answered_at = record.pid, now, 0.0
        elif self.services.relay_ready() if self._name == "relay" else self.services.ready():
            self._is_up(record, now)
        elif self._is_stuck(now):
            pid = record.pid
            machine.send_signal_if(pid, signal.SIGKILL, lambda: service.running() == record)

    def _revive(self, record: ServiceRecord, now: float) -> None:
        """Start the service again: at once after a long uptime, else after a growing pause."""
        if now < self._next:
            return
        if self._launched_at and now - self._launched_at > STABLE:
            self._deaths = 0
        self._deaths += 1
        pause = min(LAST_PAUSE, FIRST_PAUSE * 2 ** (self._deaths - 1))
        self._next, self._launched_at, self._answered_at = now + pause, now, 0.0
        what = f"The {self._name} on port {record.port} (pid {record.pid}) has died"
        try:
            if not self.services.revive(self._name):
                return
        except (FleetError, OSError) as error:
            why = f"{what} and cannot be started: {error}. Trying again in {pause:g} s."
            self._tell(NodeNews(self._about, "", why))
            return
        again = f" It has died {self._deaths} times." if self._deaths > 1 else ""
        self._tell(NodeNews(self._about, "", f"{what}; it is being started again.{again}"))

    def _is_up(self, record: ServiceRecord, now: float) -> None:
        if self._launched_at and not self._answered_at:
            text = f"The {self._name} answers again on port {record.port} (pid {record.pid})."
            self._tell(NodeNews(self._about, text))
        self._answered_at = now

    def _is_stuck(self, now: float) -> bool:
        """Whether the service has been silent for too long; one that starts has more time."""
        if self._answered_at:
            return now - self._answered_at > SILENT
        return now - self._seen_at > START[self._name]


class KeepAlive:
    """Watches services in a thread; `step` reports their news in the calling thread."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._heard: deque[NodeNews] = deque()
        self._watched: dict[Path, tuple[int, list[_WatchedService]]] = {}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self, hooks: LoopHooks) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="keep alive", daemon=True)
            self._thread.start()
        while self._heard:
            about, text, trouble = self._heard.popleft()
            hooks.say(about, trouble)
            if text:
                hooks.report(text)
                hooks.over(text)  # ends the warning about it

    def close(self) -> None:
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            for watched in self._all():
                watched.look(time.monotonic())

    def _all(self) -> Iterator[_WatchedService]:
        """Return all services; relays first, because gateways need them."""
        folders = sorted(self._home.glob("gateway/*/relay.config.json"))
        watched = [each for file in folders for each in self._of(file)]
        return iter(watched)

    def _of(self, file: Path) -> list[_WatchedService]:
        try:
            changed = os.stat(file).st_mtime_ns  # noqa: PTH116  # twice a second
            watch = self._watched.get(file)
            if watch is not None and watch[0] == changed:
                return watch[1]
            plan = read_plan(file)
        except (OSError, FleetError):
            return []
        services = Services(plan.fleet, self._home, Path(plan.settings.base))
        rows = (
            watch[1]
            if watch
            else [
                _WatchedService(name, services, self._heard.append) for name in ("relay", "gateway")
            ]
        )
        for row in rows:
            row.services = services
        self._watched[file] = (changed, rows)
        return rows
