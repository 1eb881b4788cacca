"""Call an operation, wherever it is carried out, with one signature."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fleet.bootstrap import App
from fleet.domain.errors import Unavailable
from fleet.operations.catalogue import Request, find, perform

if TYPE_CHECKING:
    from collections.abc import Mapping

Reply = TypeVar("Reply")

PATIENCE = 60.0  # for a supervisor to end a run; it may give the coder its grace first


class Client:
    def __init__(self, app: App) -> None:
        self.app = app

    def call(self, request: Request[Reply]) -> Reply:
        reply = perform(self.app.context, request)
        if find(type(request)).at_host:
            self._see_to(getattr(request, "task", ""))
        return reply

    def _see_to(self, name: str) -> None:
        """Wait until the run's host has done it; with no supervisor here, do it ourselves."""
        from fleet.operations.tasks import ShowTask  # noqa: PLC0415  # few commands come here

        def live() -> str:
            runs = perform(self.app.context, ShowTask(name)).runs
            return runs[-1].id if runs and runs[-1].state != "ended" else ""

        until = time.monotonic() + PATIENCE
        while run := live():
            if self._attend(run):
                return
            if time.monotonic() > until:
                raise Unavailable(
                    f"{run} has been told to end, but has not yet.",
                    fix=f"fleet show {name} says where it is.",
                )
            self.app.store.wait(0.1)

    def _attend(self, run_id: str) -> bool:
        """Under the host's lock: end the run as its supervisor would. False: that is its to do."""
        run = self.app.store.run(run_id)
        if run.host != self.app.home.host_id():
            return False
        with self.app.home.alone() as mine:
            if not mine:
                return False
            supervisor = self.app.supervisor()
            supervisor.claiming = False
            supervisor.start()
            until = time.monotonic() + PATIENCE
            while self.app.store.run(run_id).live and time.monotonic() < until:
                supervisor.step()
                time.sleep(0.02)
            return True


def connect(
    *,
    config: Path | None = None,
    flags: Mapping[str, object] | None = None,
    cwd: Path | None = None,
) -> Client:
    """To this machine's home."""
    app = App(cwd or Path.cwd(), os.environ, config_file=config, flags=flags or {})
    return Client(app)
