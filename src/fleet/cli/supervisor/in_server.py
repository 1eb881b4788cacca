"""The supervisor inside another process of ours: in a thread, with a store of its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from fleet.cli.supervisor.foreground import Given, Stop, supervise_until
from fleet.cli.terminal.render import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.app import App

GLANCE = 0.2  # seconds between tries to be the supervisor, while a command holds the lock


class Inside:
    """`make` is called in the thread: whoever opens a store there uses it there.

    `heard` is called there after every event, `failed` when the supervisor ends by itself; `end`
    raises why.
    """

    def __init__(
        self,
        make: Callable[[], App],
        given: Given,
        heard: Callable[[], None],
        failed: Callable[[], None],
    ) -> None:
        self._make, self._given = make, given
        self._heard, self._failed = heard, failed
        self._over = threading.Event()
        self._stop: Stop | None = None
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """The settings may have changed."""
        if self._stop is not None:
            self._stop.wake()

    def end(self) -> None:
        """Agents go on. Raise what the supervisor ended by, unless it was this."""
        with self._lock:
            self._over.set()
            if self._stop is not None:
                self._stop.ask()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        from fleet.app import preload

        try:
            preload()
            self._supervise(self._make())
        except BaseException as error:  # noqa: BLE001  # it is raised again by `end`
            self._error = error
            self._failed()

    def _supervise(self, app: App) -> None:
        while not self._over.is_set():
            with app.home.alone() as mine:
                if mine:
                    self._be_it(app)
                    return
            if found := app.daemon.running():
                say(f"A supervisor runs here already (pid {found.pid}): this server only serves.")
                return
            self._over.wait(GLANCE)

    def _be_it(self, app: App) -> None:
        with self._lock:
            self._stop = Stop(app)
            if self._over.is_set():
                return
        supervise_until(app, self._given, self._stop, self._heard)
