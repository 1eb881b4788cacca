"""Load models into memory: nodes in parallel, on one node one after the other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fleet.adapters.nodes.pulse import look
from fleet.adapters.nodes.side_by_side import SideBySide
from fleet.adapters.nodes.wake import slept_on, wake
from fleet.domain.errors import Unavailable
from fleet.domain.fleet import UNTRUSTED
from fleet.domain.nodes.inventory import Resident, Warmth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.fleet import Node, Serving
    from fleet.ports import Backend


class Warming(SideBySide[Warmth]):
    """A warm-up, begun at once. `rows`: the progress of each serving, in `wanted`'s order."""

    def __init__(
        self, wanted: Sequence[tuple[str, Serving]], backend: Callable[[Node], Backend]
    ) -> None:
        self._backend = backend
        self._wanted = wanted
        self._since: dict[int, float] = {}
        self._awake: dict[str, bool] = {}  # by node, of those that can be woken
        steps = [Warmth(m, s.node.name, s.upstream, s.context) for m, s in wanted]
        super().__init__([serving.node.name for _, serving in wanted], steps)
        self.begin()

    def rows(self) -> list[Warmth]:
        now = time.monotonic()
        return [
            row._replace(seconds=now - self._since[number]) if row.state == "loading" else row
            for number, row in enumerate(self.steps())
        ]

    def work(self, number: int) -> None:
        begun = self._since[number] = time.monotonic()
        self.note(number, self.step(number)._replace(state="loading"))
        change: dict[str, Any] = {"state": "ok"}
        try:
            change["resident"] = self._load(self._wanted[number][1])
        except Unavailable as error:
            change = {"state": "failed", "why": error.message}
        seconds = time.monotonic() - begun
        self.note(number, self.step(number)._replace(seconds=seconds, **change))

    def _load(self, serving: Serving) -> Resident:
        if not serving.node.trusted:
            raise Unavailable(UNTRUSTED)
        if not serving.node.endpoint:
            return Resident(serving.upstream)  # a hosted API: there is nothing to load
        node = serving.node
        if node.wake_on_lan and not self._is_awake(node):
            raise Unavailable(slept_on(node))
        return self._backend(serving.node).load(
            serving.upstream, context=serving.context, within=serving.timeout
        )

    def _is_awake(self, node: Node) -> bool:
        """Whether the node is awake; it is woken once, however many models it has."""
        if node.name not in self._awake:
            self._awake[node.name] = wake(node, lambda: look(node.endpoint, node.kind).up is True)
        return self._awake[node.name]
