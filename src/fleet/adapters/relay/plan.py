"""The relay's configuration: a JSON document, made from the fleet and read by the relay."""

from __future__ import annotations

import json
from dataclasses import asdict, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fleet.domain.data import dataclass
from fleet.domain.errors import BadConfig
from fleet.domain.fleet import Fleet, Gateway, Model, Node, Serving

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VERSION = 1


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """Times in seconds. `base`: the directory of key files; `traces`: empty for none.

    `projects`: by model, the project that has it; empty when it serves one project alone.
    """

    host: str = "127.0.0.1"
    port: int = 4001
    traces: str = ""
    base: str = ""
    connect: float = 2.0
    heartbeat: float = 10.0
    grace: float = 30.0
    look: float = 5.0  # between looks at a node that is at work
    priorities: Mapping[str, int] = field(default_factory=dict)  # by agent; lower goes first
    limits: Mapping[str, int] = field(default_factory=dict)  # by agent: requests at work at once
    speeds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # see `speed_key`
    projects: Mapping[str, str] = field(default_factory=dict)

    def project_of(self, model: str) -> str:
        """Return the likely project of a request that names none; empty: several use the model."""
        return self.projects.get(model, "") if self.projects else self.base


def speed_key(endpoint: str, upstream: str) -> str:
    """The key of a serving's benchmark result, used until the relay has measured its own."""
    return f"{endpoint} {upstream}"


@dataclass(frozen=True, slots=True)
class RelayPlan:
    fleet: Fleet
    settings: RelaySettings


def relay_config(fleet: Fleet, **settings: Any) -> dict[str, Any]:
    """`settings` are fields of `RelaySettings`; by default the relay has the port after the gateway's.

    A node without an address is a hosted API, which the gateway calls itself.
    """
    values = RelaySettings(**({"port": fleet.gateway.port + 1} | settings))
    nodes = {
        name: node._asdict() | {"tags": list(node.tags)}
        for name, node in fleet.nodes.items()
        if node.endpoint
    }
    models = {
        model.name: {
            "alias": model.alias,
            "also": list(model.also),
            "servings": [
                _serving_fields(serving) for serving in model.servings if serving.node.endpoint
            ],
            "fallbacks": [other.name for other in model.fallbacks],
        }
        for model in fleet.models.values()
    }
    gateway = fleet.gateway._asdict()
    config = {"version": VERSION, "name": fleet.name, "gateway": gateway, "nodes": nodes}
    return config | {"models": models, "settings": asdict(values)}


def read_plan(path: Path) -> RelayPlan:
    """Raise `BadConfig` when the file is not a configuration of the relay."""
    try:
        return plan_of(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        fix = "It is written by `fleet generate`."
        raise BadConfig(
            f"{path} is not a configuration of the relay: {error!r}.", fix=fix
        ) from None


def plan_of(config: Mapping[str, Any]) -> RelayPlan:
    if config["version"] != VERSION:
        raise ValueError(f"its version is {config['version']}")
    nodes = {name: _node(values) for name, values in config["nodes"].items()}
    models = {name: _model(name, config["models"], nodes, ()) for name in config["models"]}
    known = {item.name for item in fields(RelaySettings)}
    settings = RelaySettings(**{k: v for k, v in config["settings"].items() if k in known})
    fleet = Fleet(
        name=config["name"],
        gateway=Gateway(**config["gateway"]),
        nodes=MappingProxyType(nodes),
        models=MappingProxyType(models),
    )
    return RelayPlan(fleet, settings)


def _serving_fields(serving: Serving) -> dict[str, Any]:
    return serving._asdict() | {"node": serving.node.name}


def _node(values: Mapping[str, Any]) -> Node:
    return Node(**{**values, "tags": tuple(values["tags"])})


def _model(
    name: str, models: Mapping[str, Any], nodes: Mapping[str, Node], above: tuple[str, ...]
) -> Model:
    """Return a model with its fallbacks, without those that would make a loop (`above`)."""
    values = models[name]
    servings = tuple(Serving(**{**s, "node": nodes[s["node"]]}) for s in values["servings"])
    path = (*above, name)
    others = tuple(_model(n, models, nodes, path) for n in values["fallbacks"] if n not in path)
    return Model(name, values["alias"], servings, others, tuple(values["also"]))
