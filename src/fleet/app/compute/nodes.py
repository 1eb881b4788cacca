"""Ask the nodes of a fleet what they have, ask the relay about them, and warm their models."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fleet.config.keys.table import DEFAULT
from fleet.domain.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.nodes.survey import Prober
    from fleet.adapters.nodes.warm_up import Warming
    from fleet.app.app import App
    from fleet.domain.fleet import Fleet, Serving
    from fleet.domain.nodes.inventory import SeenNode

RELAY = 1.0  # seconds for the relay to answer; it is on this machine


class Compute:
    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def fleet(self) -> Fleet:
        """The declared fleet; raise `NotFound` when it has no nodes."""
        fleet = self._app.loaded.fleet
        if not fleet.nodes:
            raise NotFound(
                "No nodes are declared here.",
                fix="Add them under `nodes:` in fleet.yaml; the comments that `fleet init` writes show how.",
            )
        return fleet

    @cached_property
    def unsaid(self) -> frozenset[str]:
        """The nodes whose kind the settings do not declare."""
        origins = self._app.loaded.origins
        return frozenset(
            name
            for name in self._app.loaded.fleet.nodes
            if origins[f"nodes.{name}.kind"].layer == DEFAULT
            and f"nodes.{name}.provider" not in origins
        )

    @cached_property
    def prober(self) -> Prober:
        from fleet.adapters.nodes.survey import Prober

        return Prober(self._app.env, self._app.settings_folder, self.unsaid)

    def survey(self, *, within: float) -> list[SeenNode]:
        return self.prober.survey(list(self.fleet.nodes.values()), within=within)

    def look_around(self, *, within: float) -> tuple[list[SeenNode], dict[str, Any] | None]:
        """Survey the nodes, and meanwhile ask the relay for its status; None: it does not run."""
        replies: list[dict[str, Any]] = []
        asking = threading.Thread(target=lambda: replies.extend(self.relay()), daemon=True)
        asking.start()
        seen = self.survey(within=within)
        asking.join(RELAY)
        return seen, replies[0] if replies else None

    def relay(self) -> list[dict[str, Any]]:
        """Return the relay's status as the only item; empty when no relay runs."""
        from fleet.adapters.nodes.http import Asking

        port = self.fleet.gateway.port + 1
        with suppress(Unavailable), Asking(f"http://127.0.0.1:{port}", {}, within=RELAY) as asking:
            status = asking.json("/relay/status")
            return [status] if isinstance(status, dict) else []
        return []

    def thinking(self, *, within: float) -> list[str]:
        """Return the models that can think on all of their nodes but are not declared to."""
        from fleet.adapters.nodes.ollama import Ollama

        def thinks(serving: Serving) -> bool:
            with suppress(Unavailable):
                backend = self.prober.speaking(serving.node)
                return isinstance(backend, Ollama) and backend.thinks(
                    serving.upstream, within=within
                )
            return False

        return [
            model.name
            for model in self.fleet.own_models
            if not model.servings[0].thinking and all(map(thinks, model.servings))
        ]

    def warm(self, wanted: Sequence[tuple[str, Serving]]) -> Warming:
        from fleet.adapters.nodes.warm_up import Warming

        return Warming(wanted, self.prober.speaking)
