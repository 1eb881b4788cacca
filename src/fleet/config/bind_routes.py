"""The declared routes, checked against the agents and models that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.errors import nearest
from fleet.domain.fleet import CODERS
from fleet.domain.routes import RouteRule, never, takes_all_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.config.bind import _Binder
    from fleet.domain.fleet import Agent, Model

CONDITIONS = ("labels", "words", "files", "longer_than", "shorter_than")


class RouteBinder:
    def __init__(
        self, binder: _Binder, models: dict[str, Model], agents: Mapping[str, Agent], coder: str
    ) -> None:
        self.binder, self.models, self.agents, self.coder = binder, models, agents, coder

    def bound(self) -> tuple[RouteRule, ...]:
        """Return the routes in file order, the user's before the project's."""
        routes: list[RouteRule] = []
        for name, declared in self.binder.section("routes"):
            route = self.route(name, declared)
            self.warn_of_earlier(route, routes)
            routes.append(route)
        return tuple(routes)

    def route(self, name: str, declared: Mapping[str, Any]) -> RouteRule:
        agent, model = declared.get("agent", ""), declared.get("model", "")
        if not agent and not model and not declared["needs"]:
            fix = "Add `agent:`, `model:` or `needs:`."
            self.binder.problems.add(
                self.binder.merged.entries["routes", name],
                f"routes.{name}",
                "chooses nothing.",
                fix,
            )
        self.check_agent(name, agent)
        self.check_model(name, agent, model)
        self.check_lists(name, declared)
        route = RouteRule(
            name, agent, model, declared["needs"], **{each: declared[each] for each in CONDITIONS}
        )
        if never(route):
            self.binder.wrong(
                ("routes", name, "shorter_than"),
                f"no text is longer than {route.longer_than} and shorter than"
                f" {route.shorter_than} characters.",
            )
        self.narrow(route)
        return route

    def check_lists(self, name: str, declared: Mapping[str, Any]) -> None:
        for each in ("labels", "words", "files"):
            given = self.binder.merged.leaves["routes", name, each].origin.layer != "default"
            if given and not declared[each]:
                fix = "Name at least one, or leave it out."
                self.binder.wrong(
                    ("routes", name, each), "is empty, so it would match any task.", fix
                )

    def check_agent(self, name: str, agent: str) -> None:
        known = (*self.agents, *CODERS, *self.binder.own)
        if agent and agent not in known:
            fix = nearest(agent, known) or f"Agents: {', '.join(self.agents) or 'none'}."
            self.binder.wrong(("routes", name, "agent"), f"'{agent}' is not an agent.", fix)

    def check_model(self, name: str, agent: str, model: str) -> None:
        if not model or self.model(model) is not None:
            return
        known = [n for m in self.models.values() for n in m.names]
        near = nearest(model, known)
        if not agent:
            fix = near or f"Models: {', '.join(dict.fromkeys(known))}." if known else ""
            fix = fix or "Declare it first. With `agent:` it may be a name that its coder knows."
            self.binder.wrong(("routes", name, "model"), f"'{model}' is not under `models`.", fix)
        elif near:
            message = f"'{model}' is not under `models`, so it is passed to the coder unchanged."
            origin = self.binder.place("routes", name, "model")
            self.binder.problems.warn(origin, f"routes.{name}.model", f"{message} {near}")

    def narrow(self, route: RouteRule) -> None:
        """Declare the route's model narrowed to the nodes that have its tags."""
        if not route.needs:
            return
        agent = self.agents.get(route.agent)
        model = self.model(route.model) or (agent.model if agent else self.default())
        path = ("routes", route.name, "needs")
        if model is None:
            fix = "Add `model:` with a name under `models`."
            self.binder.wrong(path, "chooses nodes, and its model has none.", fix)
            return
        needs = (*route.needs, *(agent.needs if agent else ()))
        self.binder.narrow(path, model, needs, self.models)

    def default(self) -> Model | None:
        return self.model(str(self.binder.merged.leaves[("model",)].value))

    def model(self, name: str) -> Model | None:
        if name in self.models:
            return self.models[name]
        return next((model for model in self.models.values() if name and model.alias == name), None)

    def warn_of_earlier(self, route: RouteRule, earlier: list[RouteRule]) -> None:
        first = next((other for other in earlier if takes_all_of(other, route)), None)
        if first is not None:
            origin = self.binder.merged.entries["routes", route.name]
            self.binder.problems.warn(
                origin,
                f"routes.{route.name}",
                f"matches no task: '{first.name}' is before it, and takes all that it would match.",
            )
