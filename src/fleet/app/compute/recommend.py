"""The facts behind a recommendation: from the nodes, from measurements and from the settings."""

from __future__ import annotations

import re
import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders import built_in
from fleet.adapters.evals.kept import Evaluations
from fleet.adapters.nodes.http import Asking
from fleet.app.advice import least_context
from fleet.base.loose_json import mapping
from fleet.config.keys import table
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Unavailable
from fleet.domain.evals.result import SUITE, quality
from fleet.domain.fleet import NONE
from fleet.domain.nodes.inventory import (
    SPARE,
    Inventory,
    ModelShape,
    holds,
    learned,
    memory,
    resident,
    same_name,
    shape_of,
)
from fleet.domain.nodes.kinds import OLLAMA, kind_of, wire_of
from fleet.domain.nodes.speed import Pace
from fleet.domain.placement.candidates import Advice, AgentWish, CandidateNode, ModelOnNode, Stock
from fleet.domain.placement.recommend import recommend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from fleet.app.app import App
    from fleet.app.compute.benchmark import Benchmarks
    from fleet.domain.fleet import Agent, Fleet, Model, Node, Serving
    from fleet.domain.nodes.benchmark import Key, Measured
    from fleet.domain.nodes.inventory import SeenNode

SURVEY_SECONDS = 3.0  # seconds for all nodes together, and once more for their models
PER_BILLION = 0.6e9  # bytes on disk of a billion parameters, at the usual 4.5 bits each


class Build(NamedTuple):
    """What a node says about one model. `tools`: whether the model can call tools."""

    shape: ModelShape | None = None
    tools: bool | None = None


class Advising:
    """Makes the advice. It moves only models whose node is set in the file that it would write."""

    def __init__(self, app: App, made: Benchmarks) -> None:
        self._app, self._made = app, made
        self.fleet = made.compute.fleet
        file = app.loaded.project_file
        self.file: Path = file if file is not None else app.loaded.user_file
        self.layer = table.PROJECT if file is not None else table.USER

    def advise(self) -> Advice:
        seen = self._made.compute.survey(within=SURVEY_SECONDS)
        facts = PlacementFacts(
            self.fleet, seen, self._builds(seen), self._made.saved.read(), self._quality()
        )
        machines = {node.name: facts.machine(node) for node in self.fleet.nodes.values()}
        models = [
            self._written(facts.stock(model))
            for model in self.fleet.own_models
            if all(serving.node.endpoint for serving in model.servings)
        ]
        local = {model.name for model in models}
        wishes = [
            _wish(agent, agent.model)
            for agent in self.fleet.agents.values()
            if agent.model is not None
            and agent.model.name in local
            and self._ours(f"agents.{agent.name}.model")
        ]
        return recommend(machines, models, wishes)

    def _quality(self) -> dict[Key, dict[str, float]]:
        """Return the scores of `fleet eval`, by a node's address and its name for the model."""
        kept = Evaluations(self._app.home.path).newest()
        return quality(row for each in kept if each.kind == SUITE for row in each.rows)

    def _ours(self, path: str) -> bool:
        origin = self._app.loaded.origins.get(path)
        return origin is not None and origin.layer == self.layer

    def _written(self, stock: Stock) -> Stock:
        """Add what the file declares of the model; `fixed` when the file does not place it."""
        name, values, origins = stock.name, self._app.loaded.values, self._app.loaded.origins
        rest = [
            (what, values[path])
            for what in ("timeout", "max_parallel")
            if origins[path := f"models.{name}.{what}"].layer != table.DEFAULT
        ]
        keys = stock.keys if all(self._ours(f"models.{key}.node") for key in stock.keys) else ()
        listed = all(self._ours(f"models.{name}.servings.{node}") for node in stock.nodes)
        return stock._replace(keys=keys, rest=tuple(rest), fixed=not keys and not listed)

    def _builds(self, seen: Iterable[SeenNode]) -> dict[tuple[str, str], Build]:
        """Ask all nodes at once for the builds of models; return them by node and upstream name."""
        builds: dict[tuple[str, str], Build] = {}
        upstreams = dict.fromkeys(
            s.upstream for m in self.fleet.models.values() for s in m.servings
        )
        threads = [
            threading.Thread(target=self._ask, args=(each.node, upstream, builds), daemon=True)
            for each in seen
            for upstream in upstreams
            if each.inventory is not None
            and kind_of(each.inventory.kind).is_ollama
            and holds(each.inventory, upstream)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SURVEY_SECONDS + 0.5)
        return dict(builds)

    def _ask(self, node: str, upstream: str, builds: dict[tuple[str, str], Build]) -> None:
        """Ask a node about one model, and add what it says, if anything, to `builds`."""
        try:
            meter = self._made.meter(self.fleet.nodes[node])
            with Asking(meter.endpoint, meter.headers, within=SURVEY_SECONDS) as asking:
                reply = mapping(asking.json("/api/show", {"model": upstream}))
        except Unavailable:
            return
        can = reply.get("capabilities")
        tools = "tools" in can if isinstance(can, list) else None
        builds[node, upstream] = Build(shape_of(mapping(reply.get("model_info"))), tools)


class PlacementFacts:
    def __init__(
        self,
        fleet: Fleet,
        seen: Iterable[SeenNode],
        builds: Mapping[tuple[str, str], Build],
        measured: Mapping[Key, Measured],
        scores: Mapping[Key, Mapping[str, float]],
    ) -> None:
        self._fleet, self._builds, self._measured = fleet, builds, measured
        self._quality = scores
        self._seen: dict[str, Inventory] = {
            each.node: each.inventory for each in seen if each.inventory is not None
        }

    def machine(self, node: Node) -> CandidateNode:
        inventory = self._seen.get(node.name)
        kind = inventory.kind if inventory else node.kind
        loads = kind_of(kind).is_ollama
        wire = OLLAMA if loads else wire_of(node)
        return CandidateNode(node.name, node.memory, inventory is not None, loads, wire)

    def stock(self, model: Model) -> Stock:
        first = model.servings[0]
        keys = [model.name, *model.also]
        return Stock(
            model.name,
            tuple(serving.node.name for serving in model.servings),
            tuple(keys) if len(keys) == len(model.servings) else (),
            first.upstream,
            model.alias,
            first.context,
            MappingProxyType({n.name: self._spot(n, model) for n in self._fleet.nodes.values()}),
            self._needs(first),
            self._billions(first.upstream),
            next((b.tools for b in self._of(first.upstream) if b.tools is not None), None),
            tuple(other.name for other in model.fallbacks),
            quality=self._scores(model),
        )

    def _scores(self, model: Model) -> Mapping[str, float]:
        """Return the model's scores on any of its nodes, as the weights are the same on all."""
        keys = [(serving.node.endpoint, serving.upstream) for serving in model.servings]
        return next((self._quality[key] for key in keys if key in self._quality), NONE)

    def _of(self, upstream: str) -> list[Build]:
        return [build for (_, name), build in self._builds.items() if same_name(name, upstream)]

    def _weights(self, upstream: str) -> int:
        sizes = (
            model.size
            for inventory in self._seen.values()
            for model in inventory.held
            if same_name(model.name, upstream)
        )
        return max(sizes, default=0)

    def _billions(self, upstream: str) -> float:
        """Return the model's parameters in billions, by its name, else by its size on disk."""
        named = re.search(r"(?i)(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])", upstream)
        return float(named[1]) if named else self._weights(upstream) / PER_BILLION

    def _needs(self, serving: Serving) -> Callable[[int], int] | None:
        """Return a function from context to bytes: as seen on a node, else as computed."""
        upstream, weights = serving.upstream, self._weights(serving.upstream)
        if not weights:
            return None
        each = self._learned(upstream)
        if each is not None:
            return lambda context: int(weights + each * context) + SPARE
        shape = next((b.shape for b in self._of(upstream) if b.shape is not None), None)
        if shape is None:
            return None
        return lambda context: memory(weights, shape, context, parallel=serving.slots).total

    def _learned(self, upstream: str) -> float | None:
        for inventory in self._seen.values():
            loaded = resident(inventory, upstream)
            model = next((h for h in inventory.held if same_name(h.name, upstream)), None)
            if loaded is not None and model is not None and (each := learned(model, loaded)):
                return each
        return None

    def _spot(self, node: Node, model: Model) -> ModelOnNode:
        own = next((s.upstream for s in model.servings if s.node == node), None)
        upstream = own or model.servings[0].upstream
        inventory = self._seen.get(node.name)
        on_disk = inventory is not None and holds(inventory, upstream)
        row = self._measured.get((node.endpoint, upstream))
        if row is not None:
            return ModelOnNode(row.pace, on_disk)
        return ModelOnNode(self._guess(node, upstream), on_disk, guessed=True)

    def _guess(self, node: Node, upstream: str) -> Pace:
        """Estimate the pace from another model there: a larger one is slower in proportion."""
        size = self._weights(upstream)
        rows = [(self._weights(u), row) for (url, u), row in self._measured.items()
                if url == node.endpoint]  # fmt: skip
        known = [(weights, row) for weights, row in rows if weights and size]
        if not known:
            return Pace()
        weights, row = min(known, key=lambda pair: abs(pair[0] - size))
        return Pace(row.prefill * weights / size, row.decode * weights / size)


def _wish(agent: Agent, model: Model) -> AgentWish:
    calls_tools = built_in(agent.coder).calls_tools
    return AgentWish(agent.name, model.name, calls_tools, least_context(agent.coder))


def changes_of(advice: Advice) -> list[Any]:
    """The changes as `fleet.config.commands.set` takes them."""
    from fleet.config.commands.set import Change
    from fleet.config.keys.lookup import by_path

    changes = []
    for line in advice.lines:
        section, _, *rest = line.path
        path = ".".join([section, "*", *(["servings", "*"] if len(rest) > 1 else rest)])
        changes.append(Change(by_path()[path], line.path, line.value))
    return changes
