"""Merge the fleets of several projects that share one gateway and one relay."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from fleet.domain.errors import Refused
from fleet.domain.fleet import alias_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.fleet import Agent, Fleet, Gateway, Model, Node


def together(fleets: Mapping[str, Fleet]) -> Fleet:
    """Merge these fleets, by project directory, the oldest first.

    A machine has one state in the relay, whatever each project calls it. Raise `Refused` when two
    projects mean different things by one name, as a request carries only the name.
    """
    merged = _MergedFleets()
    for project, fleet in fleets.items():
        merged.add(project, fleet)
    first = next(iter(fleets.values()))
    return first._replace(
        nodes=MappingProxyType(merged.nodes),
        models=MappingProxyType(merged.models),
        agents=MappingProxyType(merged.agents),
    )


def owners(fleets: Mapping[str, Fleet]) -> dict[str, str]:
    """By model, the project that declares it; empty when several do."""
    known: dict[str, str] = {}
    for project, fleet in fleets.items():
        for name in fleet.models:
            known[name] = "" if name in known else project
    return known


class _MergedFleets:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.models: dict[str, Model] = {}
        self.agents: dict[str, Agent] = {}
        self._gateway: Gateway | None = None
        self._machines: dict[tuple[str, str, str], Node] = {}
        self._meanings: dict[str, str] = {}  # by name at the gateway: the model
        self._whose: dict[str, str] = {}

    def add(self, project: str, fleet: Fleet) -> None:
        same = self._gateway is None or self._gateway == fleet.gateway
        self._agree(project, "settings of the gateway", same)
        self._gateway = fleet.gateway
        nodes = {node.name: self._node(project, node) for node in fleet.nodes.values()}
        for name, model in fleet.models.items():
            bound = _bound(model, nodes)
            self._agree(project, f"model '{name}'", self.models.get(name, bound) == bound)
            self.models[name] = bound
            for alias in model.names:
                self._means(project, alias, model)
        for agent in fleet.agents.values():
            self._agent(project, agent, nodes)

    def _node(self, project: str, node: Node) -> Node:
        machine = (node.endpoint or node.name, node.kind, node.api_key)
        if machine not in self._machines:
            self._agree(project, f"node '{node.name}'", node.name not in self.nodes)
            self._machines[machine] = self.nodes[node.name] = node
        return self._machines[machine]

    def _agent(self, project: str, agent: Agent, nodes: Mapping[str, Node]) -> None:
        if agent.model is None:
            self.agents.setdefault(agent.name, agent)
            return
        self._means(project, alias_of(agent), agent.model)
        known = self.agents.get(agent.name)
        if known is None or known.model is None:
            self.agents[agent.name] = agent._replace(model=_bound(agent.model, nodes))

    def _means(self, project: str, name: str, model: Model) -> None:
        meaning = self._meanings.setdefault(name, model.name)
        self._agree(project, f"name '{name}'", meaning == model.name)

    def _agree(self, project: str, what: str, agrees: bool) -> None:  # noqa: FBT001  # what it checks
        other = self._whose.setdefault(what, project)
        if not agrees:
            raise Refused(
                f"{other} and {project} mean different things by the {what}, so one gateway cannot"
                " serve both.",
            )


def _bound(model: Model, nodes: Mapping[str, Node]) -> Model:
    servings = tuple(s._replace(node=nodes[s.node.name]) for s in model.servings)
    fallbacks = tuple(_bound(other, nodes) for other in model.fallbacks)
    return model._replace(servings=servings, fallbacks=fallbacks)
