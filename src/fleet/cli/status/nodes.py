"""The nodes of `fleet status`: asked in a thread of their own while the rest of the page is read."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any

from fleet.cli.compute.views import advice, status_data, status_view
from fleet.cli.terminal.view import Stack

if TYPE_CHECKING:
    from fleet.app import App
    from fleet.domain.nodes.inventory import Seen


class Nodes:
    def __init__(self, app: App, timeout: float) -> None:
        from fleet.app.compute.nodes import Compute

        self._fleet = app.loaded.fleet
        self._compute = Compute(app)
        self._timeout = timeout
        self._answers: list[tuple[list[Seen], dict[str, Any] | None]] = []
        self._thread = Thread(target=self._ask, daemon=True)
        if self._fleet.nodes:
            self._thread.start()

    def _ask(self) -> None:
        self._answers.append(self._compute.look_around(within=self._timeout))

    def found(self) -> tuple[dict[str, Any], Stack, list[str]]:
        """The facts, the view of them, and what the settings say that the nodes do not bear out."""
        fleet = self._fleet
        if not fleet.nodes:
            return {"fleet": fleet.name, "nodes": [], "routes": [], "relay": None}, Stack([]), []
        self._thread.join()
        seen, relay = self._answers[0]
        notes = advice(fleet, seen, self._compute.unsaid)
        return status_data(fleet, seen, relay), status_view(fleet, seen, relay), notes
