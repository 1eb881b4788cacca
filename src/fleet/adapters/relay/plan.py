"""What the relay is told of the fleet: a JSON document, made of it and read back."""

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
class Settings:
    """Seconds. `base`: what the file of a key is relative to; `traces`: empty for none."""

    host: str = "127.0.0.1"
    port: int = 4001
    traces: str = ""
    base: str = ""
    connect: float = 2.0
    heartbeat: float = 10.0
    grace: float = 30.0
    look: float = 5.0  # between looks at a node that is at work
    priorities: Mapping[str, int] = field(default_factory=dict)  # by agent; lower goes first
    speeds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # see `speed_key`


def speed_key(endpoint: str, upstream: str) -> str:
    """By which a serving's measured pace is found, before the relay has one of its own."""
    return f"{endpoint} {upstream}"


@dataclass(frozen=True, slots=True)
class Plan:
    fleet: Fleet
    settings: Settings


def relay_config(fleet: Fleet, **settings: Any) -> dict[str, Any]:
    """`settings` are fields of `Settings`; by default the relay is the gateway's next port.

    A node without an address is a hosted API that the gateway itself asks.
    """
    told = Settings(**({"port": fleet.gateway.port + 1} | settings))
    nodes = {
        name: node._asdict() | {"tags": list(node.tags)}
        for name, node in fleet.nodes.items()
        if node.endpoint
    }
    models = {
        model.name: {
            "alias": model.alias,
            "also": list(model.also),
            "servings": [_told(serving) for serving in model.servings if serving.node.endpoint],
            "fallbacks": [other.name for other in model.fallbacks],
        }
        for model in fleet.models.values()
    }
    gateway = fleet.gateway._asdict()
    held = {"version": VERSION, "name": fleet.name, "gateway": gateway, "nodes": nodes}
    return held | {"models": models, "settings": asdict(told)}


def read_plan(path: Path) -> Plan:
    """Raise `BadConfig` when it is not one of ours."""
    try:
        return plan_of(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        fix = "It is written by `fleet generate`."
        raise BadConfig(
            f"{path} is not a configuration of the relay: {error!r}.", fix=fix
        ) from None


def plan_of(held: Mapping[str, Any]) -> Plan:
    if held["version"] != VERSION:
        raise ValueError(f"its version is {held['version']}")
    nodes = {name: _node(told) for name, told in held["nodes"].items()}
    models = {name: _model(name, held["models"], nodes, ()) for name in held["models"]}
    known = {item.name for item in fields(Settings)}
    settings = Settings(**{k: v for k, v in held["settings"].items() if k in known})
    fleet = Fleet(
        name=held["name"],
        gateway=Gateway(**held["gateway"]),
        nodes=MappingProxyType(nodes),
        models=MappingProxyType(models),
    )
    return Plan(fleet, settings)


def _told(serving: Serving) -> dict[str, Any]:
    return serving._asdict() | {"node": serving.node.name}


def _node(told: Mapping[str, Any]) -> Node:
    return Node(**{**told, "tags": tuple(told["tags"])})


def _model(
    name: str, held: Mapping[str, Any], nodes: Mapping[str, Node], above: tuple[str, ...]
) -> Model:
    """A fallback that leads back to where it came from is left out."""
    told = held[name]
    servings = tuple(Serving(**{**s, "node": nodes[s["node"]]}) for s in told["servings"])
    path = (*above, name)
    others = tuple(_model(n, held, nodes, path) for n in told["fallbacks"] if n not in path)
    return Model(name, told["alias"], servings, others, tuple(told["also"]))
