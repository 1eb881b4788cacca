"""Measure the nodes of a fleet, and store the results."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from fleet.adapters.nodes.benchmark import BenchmarkSize, BenchmarkStep, Measuring, Meter
from fleet.adapters.nodes.key import key_of
from fleet.adapters.nodes.measurements import Measurements
from fleet.adapters.nodes.survey import detect, make_backend
from fleet.app.compute.nodes import Compute

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.app.app import App
    from fleet.domain.fleet import Node, Serving

__all__ = ["BenchmarkSize", "BenchmarkStep", "Benchmarks", "Measuring"]

DETECT = 2.0  # seconds


class Benchmarks:
    def __init__(self, app: App) -> None:
        self._app = app
        self.compute = Compute(app)

    @cached_property
    def saved(self) -> Measurements:
        return Measurements(self._app.home.path)

    def measure(self, wanted: Sequence[tuple[str, Serving]], size: BenchmarkSize) -> Measuring:
        return Measuring(wanted, self.meter, size)

    def meter(self, node: Node) -> Meter:
        """Raise `Unavailable` when its key cannot be had."""
        kind = node.kind
        if node.name in self.compute.unsaid:
            kind = detect(node.endpoint, within=DETECT) or kind
        key = key_of(node.api_key, self._app.env, self._app.settings_folder)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return Meter(kind, node.endpoint, headers, make_backend(kind, node.endpoint, key))
