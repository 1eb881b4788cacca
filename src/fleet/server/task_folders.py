"""The folders of tasks that were written over HTTP or MCP: `tasks/<id>/`, for people and agents."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from fleet.domain.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from fleet.domain.event import Event
    from fleet.ports import TaskFiles

REST = 50.0  # pause after a folder, in multiples of the time it took, while requests come in
QUIET = 0.05  # seconds without an event after which folders are written without a pause
LOOK = 1.0  # seconds between checks whether a supervisor runs


class Folders:
    """A thread that writes the folders after the response was sent, so that no request waits.

    `supervised`: whether a supervisor of this home runs, which writes them itself. One that starts
    later writes those that are missing.
    """

    def __init__(
        self,
        open_files: Callable[[], AbstractContextManager[TaskFiles]],
        supervised: Callable[[], bool],
    ) -> None:
        self._open, self._is_supervised = open_files, supervised
        self._due: dict[str, None] = {}
        self._newest = 0.0  # when the last event came
        self._fresh = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="folders", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over = True
        self._fresh.set()
        self._thread.join()

    def add(self, events: Sequence[Event]) -> None:
        """Write the folders of these events' tasks; called by one thread, after the commit."""
        for event in events:
            if event.changes_folder:
                self._due[event.task] = None
        if self._due:
            self._newest = time.monotonic()
            self._fresh.set()

    def _run(self) -> None:
        self._fresh.wait()
        while not self._over:
            try:
                self._write_all()
            except (FleetError, OSError):  # such as: too many open files
                time.sleep(LOOK)

    def _write_all(self) -> None:
        with self._open() as files:
            while not self._over:
                self._fresh.clear()
                self._write_due(files)
                self._fresh.wait()

    def _write_due(self, files: TaskFiles) -> None:
        looked, supervised = 0.0, False
        while self._due and not self._over:
            began = time.monotonic()
            if began - looked > LOOK:
                looked, supervised = began, self._is_supervised()
            task, _ = self._due.popitem()  # the newest, which people look at first
            if not supervised:
                files.refresh(task)
                self._rest(began)

    def _rest(self, began: float) -> None:
        until = (now := time.monotonic()) + REST * (now - began)
        while (now := time.monotonic()) < min(until, self._newest + QUIET) and not self._over:
            time.sleep(min(until, self._newest + QUIET) - now)
