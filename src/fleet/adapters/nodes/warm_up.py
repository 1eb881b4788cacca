"""Load models into memory: nodes in parallel, on one node one after the other."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from fleet.adapters.nodes.pulse import look
from fleet.adapters.nodes.wake import wake
from fleet.domain.errors import Unavailable
from fleet.domain.fleet import UNTRUSTED
from fleet.domain.nodes.inventory import Resident, Warmth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.fleet import Node, Serving
    from fleet.ports import Backend


class Warming:
    """Starts at once. `rows` is the progress of each serving, in the order of the request."""

    def __init__(
        self, wanted: Sequence[tuple[str, Serving]], backend: Callable[[Node], Backend]
    ) -> None:
        self._backend = backend
        self._wanted = wanted
        self._lock = threading.Lock()
        self._rows = [Warmth(m, s.node.name, s.upstream, s.context) for m, s in wanted]
        self._since: dict[int, float] = {}
        names = dict.fromkeys(serving.node.name for _, serving in wanted)
        self._threads = [
            threading.Thread(target=self._node, args=(name,), daemon=True) for name in names
        ]
        for thread in self._threads:
            thread.start()

    def rows(self) -> list[Warmth]:
        now = time.monotonic()
        with self._lock:
            return [
                row._replace(seconds=now - self._since[number]) if row.state == "loading" else row
                for number, row in enumerate(self._rows)
            ]

    def wait(self, seconds: float) -> bool:
        """Wait for at most so long; whether all of it is over."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _node(self, name: str) -> None:
        for number, (_, serving) in enumerate(self._wanted):
            if serving.node.name == name:
                self._serving(number, serving)

    def _serving(self, number: int, serving: Serving) -> None:
        begun = self._since[number] = time.monotonic()
        self._note(number, state="loading")
        try:
            loaded = self._load(serving)
        except Unavailable as error:
            self._note(number, state="failed", why=error.message, seconds=time.monotonic() - begun)
        else:
            self._note(number, state="ok", resident=loaded, seconds=time.monotonic() - begun)

    def _load(self, serving: Serving) -> Resident:
        if not serving.node.trusted:
            raise Unavailable(UNTRUSTED)
        if not serving.node.endpoint:
            return Resident(serving.upstream)  # a hosted API: there is nothing to load
        node = serving.node
        if node.wake_on_lan:
            wake(node, lambda: look(node.endpoint, node.kind).up is True)
        return self._backend(serving.node).load(
            serving.upstream, context=serving.context, within=serving.timeout
        )

    def _note(self, number: int, **change: object) -> None:
        with self._lock:
            self._rows[number] = self._rows[number]._replace(**change)  # type: ignore[arg-type]
