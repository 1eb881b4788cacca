"""Call an operation, wherever it is carried out, with one signature."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fleet.bootstrap import App
from fleet.domain.errors import BadInput, Unavailable
from fleet.operations.catalogue import Request, find, perform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.run import Run
    from fleet.operations.stopping import Stopping

Reply = TypeVar("Reply")

PATIENCE = 60.0  # for a supervisor to end a run; it may give the coder its grace first


class Client:
    def __init__(self, app: App) -> None:
        self.app = app

    def call(self, request: Request[Reply]) -> Reply:
        reply = perform(self.app.context, request)
        if find(type(request)).at_host:
            self._see_to(str(getattr(reply, "id", "")))
        return reply

    def supervised(self) -> bool:
        """Whether a supervisor looks after the queue, here or on another host."""
        if self.app.home.supervisor_pid():
            return True
        store, here = self.app.store, self.app.home.host_id()
        others = [h for h in store.hosts().values() if h.id != here and h.holder]
        return any(h.lease_until > store.now() for h in others)

    def stop_runs(self) -> tuple[Stopping, ...]:
        """End every run of this host; their tasks are open again, and cost them no attempt."""
        from fleet.operations.stopping import StopRuns  # noqa: PLC0415  # start-up time

        asked: tuple[Stopping, ...] = self.call(StopRuns(self.app.home.host_id()))
        until = time.monotonic() + PATIENCE
        while going := [r for s in asked if (r := self.app.store.run(s.run)).live]:
            if time.monotonic() > until:
                raise _not_yet(going[0])
            if not self._attend(going, until):
                self.app.store.wait(0.1)
        return asked

    def _see_to(self, task_id: str) -> None:
        """Wait until each run's host has done it; with no supervisor here, do it ourselves."""
        until = time.monotonic() + PATIENCE
        while runs := self._to_end(task_id):
            if time.monotonic() > until:
                raise _not_yet(runs[0])
            if not self._attend(runs, until):
                self.app.store.wait(0.1)

    def _to_end(self, task_id: str) -> list[Run]:
        """The runs of this task and of its children that somebody wants to end."""
        wanted = [run for run in self.app.store.live_runs() if run.wanted]
        return [run for run in wanted if task_id in self._lineage(run.task)]

    def _lineage(self, task_id: str) -> list[str]:
        found = []
        while task_id:
            found.append(task_id)
            task_id = self.app.store.task(task_id).parent
        return found

    def _attend(self, runs: list[Run], until: float) -> bool:
        """Under the host's lock: end them as its supervisor would. False: that is its to do."""
        host = self.app.home.host_id()
        ours = [run.id for run in runs if run.host == host]
        if not ours:
            return False
        with self.app.home.alone() as mine:
            if not mine:
                return False
            self.app.arrive()
            try:
                self._end(ours, until)
            finally:
                self.app.leave()
            return True

    def _end(self, ours: list[str], until: float) -> None:
        supervisor = self.app.supervisor()
        supervisor.claiming = False
        supervisor.start()
        while any(self.app.store.run(i).live for i in ours) and time.monotonic() < until:
            supervisor.step()
            time.sleep(0.02)


def _not_yet(run: Run) -> Unavailable:
    return Unavailable(
        f"{run.id} has been told to end, but has not yet.",
        fix=f"`fleet show {run.task}` says where it is.",
    )


def connect(
    *,
    config: Path | None = None,
    flags: Mapping[str, object] | None = None,
    cwd: Path | None = None,
) -> Client:
    """To this machine's home."""
    return Client(App(cwd or here(), os.environ, config_file=config, flags=flags or {}))


def here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise BadInput(
            "The directory you are in is gone.", fix="cd to one that is there."
        ) from error
