"""The nodes and models that the server's fleet.yaml declares: how they are, and where requests go.

`fleet nodes` and `fleet status` show the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import NotFound, Refused, nearest
from fleet.domain.limits import Name, Whole
from fleet.domain.nodes.inventory import resident
from fleet.domain.nodes.route import NodeOutlook, route
from fleet.operations.catalogue import Operation, Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.fleet import Agent, Fleet, Model, Serving
    from fleet.domain.nodes.inventory import Inventory, SeenNode, Warmth
    from fleet.operations.catalogue import Context

MOST_TOKENS = 10_000_000  # tokens of a request whose route is explained


@dataclass(frozen=True, slots=True)
class ResidentRow:
    """`memory` and `graphics` in bytes; `until`: when the node will unload it, in its own words."""

    name: str
    memory: int
    graphics: int
    context: int
    until: str


@dataclass(frozen=True, slots=True)
class HeldRow:
    name: str
    size: int
    context: int
    family: str


@dataclass(frozen=True, slots=True)
class PaceRow:
    """What the relay has seen of one model on a node: tokens a second, and seconds to load it.

    `why`: while its `breaker` is open, why it gets no requests.
    """

    upstream: str
    slots: int
    busy: int
    answered: int
    prefill: float
    decode: float
    load: float
    breaker: str
    why: str


@dataclass(frozen=True, slots=True)
class RelayNodeRow:
    """`breaker`: closed, open, probing or gentle. `next_probe`: in so many seconds, if it is down.

    `resting`: for so many seconds it gets no requests, because it asked for that. `why`: of either.
    """

    breaker: str
    why: str
    next_probe: float | None
    busy: int
    waiting: int
    resting: float
    servings: tuple[PaceRow, ...]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """`status`: online, offline (`error` says why) or not_asked. None: the node does not report it.

    `slots`: requests at once; `memory`: bytes that models may use, 0 when it is not declared.
    """

    name: str
    endpoint: str
    kind: str
    status: str
    error: str | None
    version: str | None
    latency_ms: float | None
    models: tuple[str, ...]
    loaded_models: tuple[str, ...]
    resident: tuple[ResidentRow, ...]
    held: tuple[HeldRow, ...]
    busy: int | None
    waiting: int | None
    slots: int | None
    tags: tuple[str, ...]
    memory: int
    relay: RelayNodeRow | None


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One node that serves an agent's model; of one agent, the first is tried first."""

    agent: str
    node: str
    upstream: str
    model: str
    alias: str
    context: int
    status: str
    resident: bool | None


@dataclass(frozen=True, slots=True)
class LineRow:
    """Requests that wait for a slot of a model."""

    model: str
    requests: int


@dataclass(frozen=True, slots=True)
class RelayRow:
    """`served`: requests since it was started; `active`: at work now."""

    since: Time
    served: int
    waiting: tuple[LineRow, ...]
    active: int


@dataclass(frozen=True, slots=True)
class WarmRow:
    """`state`: waiting, loading, ok or failed."""

    model: str
    node: str
    upstream: str
    context: int
    state: str
    why: str | None
    resident: ResidentRow | None
    seconds: float


@dataclass(frozen=True, slots=True)
class NodesRow:
    """`at`: when the nodes were asked. `relay`: None when none runs, or that of another fleet."""

    fleet: str
    nodes: tuple[NodeRow, ...]
    routes: tuple[RouteRow, ...]
    relay: RelayRow | None
    warming: tuple[WarmRow, ...]
    at: Time


@dataclass(frozen=True, slots=True)
class ServingRow:
    """A model on a node. `decode`: tokens a second, as the relay has seen it; 0: not yet."""

    node: str
    upstream: str
    context: int
    slots: int
    status: str
    resident: bool | None
    decode: float


@dataclass(frozen=True, slots=True)
class ModelRow:
    """`servings`: best first. `agents`: who use it. `waiting`: requests that wait for a slot."""

    name: str
    alias: str
    context: int
    servings: tuple[ServingRow, ...]
    fallbacks: tuple[str, ...]
    agents: tuple[str, ...]
    waiting: int


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """Seconds until a node would have answered, term by term."""

    node: str
    wait: float
    load: float
    prefill: float
    decode: float
    total: float


@dataclass(frozen=True, slots=True)
class RouteExplained:
    """`node`: where such a request would go now; empty when no node could answer, and `why`."""

    model: str
    node: str
    why: str
    estimates: tuple[EstimateRow, ...]


@dataclass(frozen=True, slots=True)
class ListNodes(Request[NodesRow]):
    """The nodes are asked, at most every 1.5 seconds, however many ask for them."""


@dataclass(frozen=True, slots=True)
class ListModels(Request[tuple[ModelRow, ...]]):
    pass


@dataclass(frozen=True, slots=True)
class ExplainRoute(Request[RouteExplained]):
    """Of a request of so many tokens for a model, by its name, its alias or its agent."""

    model: Name = ""
    agent: Name = ""
    prompt: Annotated[int, Whole(0, MOST_TOKENS)] = 8000
    output: Annotated[int, Whole(0, MOST_TOKENS)] = 500


@dataclass(frozen=True, slots=True)
class WarmModel(Request[tuple[WarmRow, ...]]):
    """Load models into their nodes' memory, to stay. Empty: all; else by name, alias or agent.

    `node`: only there. The reply is how far it has come; `node.list` says how it goes on.
    """

    model: Name = ""
    agent: Name = ""
    node: Name = ""


def list_nodes(context: Context, _request: ListNodes) -> NodesRow:
    machines = context.machines()
    looked = machines.look()
    return nodes_of(
        machines.fleet, looked.seen, looked.relay, warming=machines.warming(), at=looked.at
    )


def nodes_of(
    fleet: Fleet,
    seen: Sequence[SeenNode],
    relay: Mapping[str, Any] | None,
    *,
    warming: Sequence[Warmth] = (),
    at: int = 0,
) -> NodesRow:
    relayed = relay_nodes(fleet, relay)
    return NodesRow(
        fleet.name,
        tuple(node_row(fleet, each, relayed.get(each.node)) for each in seen),
        tuple(row for agent in fleet.agents.values() for row in _routes(agent, seen)),
        _relay_row(relay) if relayed and relay else None,
        tuple(map(warm_row, warming)),
        at,
    )


def relay_nodes(fleet: Fleet, relay: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The relay's status of each node; empty when no relay runs, or it serves another fleet."""
    nodes = relay.get("nodes") if relay else None
    return {
        name: facts
        for name, node in fleet.nodes.items()
        if isinstance(nodes, dict)
        and isinstance(facts := nodes.get(name), dict)
        and facts.get("endpoint") == node.endpoint
    }


def node_row(fleet: Fleet, seen: SeenNode, relay: Mapping[str, Any] | None = None) -> NodeRow:
    inventory, node = seen.inventory, fleet.nodes[seen.node]
    loaded = tuple(inventory.resident or ()) if inventory else ()
    return NodeRow(
        name=seen.node,
        endpoint=node.endpoint,
        kind=inventory.kind if inventory else node.kind,
        status=_status(seen),
        error=seen.why or None,
        version=(inventory.version or None) if inventory else None,
        latency_ms=round(inventory.latency * 1000, 1) if inventory else None,
        models=tuple(model.name for model in inventory.held) if inventory else (),
        loaded_models=tuple(each.name for each in loaded),
        resident=tuple(ResidentRow(*each) for each in loaded),
        held=tuple(HeldRow(*model) for model in inventory.held) if inventory else (),
        **_work(fleet, seen, relay),
        tags=node.tags,
        memory=node.memory,
        relay=_relay_node(relay) if relay else None,
    )


def _status(seen: SeenNode) -> str:
    return seen.state.replace(" ", "_")


def _work(fleet: Fleet, seen: SeenNode, relay: Mapping[str, Any] | None) -> dict[str, int | None]:
    """The requests at work, those waiting, and the slots: as the node says, else as the relay knows."""
    inventory, facts = seen.inventory, relay or {}
    busy = inventory.busy if inventory and inventory.busy is not None else facts.get("busy")
    waiting = facts.get("waiting") or (inventory.waiting if inventory else None)
    servings = {s for m in fleet.models.values() for s in m.servings if s.node.name == seen.node}
    declared = fleet.nodes[seen.node].max_parallel or sum(s.slots for s in servings)
    slots = (inventory.slots if inventory else None) or declared or None
    whole = {"busy": busy, "waiting": waiting, "slots": slots}
    return {name: value if isinstance(value, int) else None for name, value in whole.items()}


def _relay_node(facts: Mapping[str, Any]) -> RelayNodeRow:
    """Read the relay's status of a node; the relay may run another release."""
    servings = facts.get("servings")
    probe = facts.get("next_probe")
    return RelayNodeRow(
        str(facts.get("breaker") or ""),
        str(facts.get("why") or ""),
        float(probe) if isinstance(probe, (int, float)) else None,
        int(facts.get("busy") or 0),
        int(facts.get("waiting") or 0),
        float(facts.get("resting") or 0),
        tuple(
            _pace_row(str(name), each)
            for name, each in (servings.items() if isinstance(servings, dict) else ())
            if isinstance(each, dict)
        ),
    )


def _pace_row(upstream: str, facts: Mapping[str, Any]) -> PaceRow:
    slots, busy, answered = (int(facts.get(key) or 0) for key in ("slots", "busy", "answered"))
    prefill, decode, load = (float(facts.get(key) or 0) for key in ("prefill", "decode", "load"))
    breaker, why = (str(facts.get(key) or "") for key in ("breaker", "why"))
    return PaceRow(upstream, slots, busy, answered, prefill, decode, load, breaker, why)


def _pace(node: RelayNodeRow | None, upstream: str) -> PaceRow | None:
    return next(
        (pace for pace in (node.servings if node else ()) if pace.upstream == upstream), None
    )


def _relay_row(relay: Mapping[str, Any]) -> RelayRow:
    waiting = relay.get("waiting")
    counts = waiting.items() if isinstance(waiting, dict) else ()
    return RelayRow(
        int(relay.get("since") or 0),
        int(relay.get("served") or 0),
        tuple(LineRow(str(model), int(count)) for model, count in counts),
        int(relay.get("active") or 0),
    )


def warm_row(row: Warmth) -> WarmRow:
    resident = ResidentRow(*row.resident) if row.resident else None
    where = row.model, row.node, row.upstream, row.context
    return WarmRow(*where, row.state, row.why or None, resident, round(row.seconds, 2))


def _routes(agent: Agent, seen: Sequence[SeenNode]) -> list[RouteRow]:
    """A row for each node that serves the agent's model, best first."""
    if agent.model is None:
        return []
    states = {each.node: each for each in seen}
    return [
        RouteRow(
            agent.name,
            serving.node.name,
            serving.upstream,
            agent.model.name,
            agent.model.alias,
            serving.context,
            _status(states[serving.node.name]),
            _is_resident(states[serving.node.name].inventory, serving.upstream),
        )
        for serving in agent.model.servings
        if serving.node.name in states
    ]


def _is_resident(inventory: Inventory | None, upstream: str) -> bool | None:
    if inventory is None or inventory.resident is None:
        return None
    return resident(inventory, upstream) is not None


def list_models(context: Context, _request: ListModels) -> tuple[ModelRow, ...]:
    machines = context.machines()
    fleet, looked = machines.fleet, machines.look()
    relayed, states = relay_nodes(fleet, looked.relay), {each.node: each for each in looked.seen}
    line = _relay_row(looked.relay).waiting if relayed and looked.relay else ()
    waiting = {each.model: each.requests for each in line}
    return tuple(
        ModelRow(
            model.name,
            model.alias,
            model.context,
            tuple(_serving(serving, states, relayed) for serving in model.servings),
            tuple(other.name for other in model.fallbacks),
            tuple(agent.name for agent in fleet.agents.values() if agent.model == model),
            waiting.get(model.name, 0),
        )
        for model in fleet.own_models
    )


def _serving(
    serving: Serving, states: Mapping[str, SeenNode], relayed: Mapping[str, Mapping[str, Any]]
) -> ServingRow:
    seen = states.get(serving.node.name)
    facts = relayed.get(serving.node.name)
    pace = _pace(_relay_node(facts) if facts else None, serving.upstream)
    return ServingRow(
        serving.node.name,
        serving.upstream,
        serving.context,
        serving.slots,
        _status(seen) if seen else "not_asked",
        _is_resident(seen.inventory, serving.upstream) if seen else None,
        pace.decode if pace else 0.0,
    )


def explain_route(context: Context, request: ExplainRoute) -> RouteExplained:
    machines = context.machines()
    fleet, looked = machines.fleet, machines.look()
    (model,) = _models(fleet, request.model, request.agent)
    relayed, states = relay_nodes(fleet, looked.relay), {each.node: each for each in looked.seen}
    outlooks = [_outlook(each, states, relayed, request.output) for each in model.servings]
    best = route(outlooks, prompt=request.prompt, output=request.output)
    rows = tuple(
        EstimateRow(e.node, *(round(t, 3) for t in (e.wait, e.load, e.prefill, e.decode, e.total)))
        for e in best.estimates
    )
    return RouteExplained(model.name, best.node, best.why, rows)


def _outlook(
    serving: Serving,
    states: Mapping[str, SeenNode],
    relayed: Mapping[str, Mapping[str, Any]],
    output: int,
) -> NodeOutlook:
    """The outlook of one serving; if its slots are taken, the wait is assumed to be one reply."""
    seen, facts = states.get(serving.node.name), relayed.get(serving.node.name)
    node = _relay_node(facts) if facts else None
    pace = _pace(node, serving.upstream)
    up = seen.up if seen else None
    if node is not None and node.breaker == "open":
        up = False
    resident = _is_resident(seen.inventory, serving.upstream) if seen else None
    is_full = pace is not None and pace.busy >= serving.slots > 0
    return NodeOutlook(
        serving.node.name,
        up,
        (node.why if node else "") or (seen.why if seen else ""),
        wait=output / pace.decode if pace and is_full and pace.decode else 0.0,
        load=pace.load if pace and resident is False else 0.0,
        prefill=pace.prefill if pace else 0.0,
        decode=pace.decode if pace else 0.0,
    )


def warm_model(context: Context, request: WarmModel) -> tuple[WarmRow, ...]:
    machines = context.machines()
    fleet = machines.fleet
    everything = not (request.model or request.agent)
    models = fleet.own_models if everything else _models(fleet, request.model, request.agent)
    servings = [
        (model.name, serving)
        for model in models
        for serving in model.servings
        if request.node in {"", serving.node.name}
    ]
    if not servings:
        raise NotFound(
            "That model is not declared on that node.", fix="`fleet nodes` lists the routes."
        )
    machines.warm(servings)
    return tuple(map(warm_row, machines.warming()))


def _models(fleet: Fleet, model: str, agent: str) -> list[Model]:
    if bool(model) == bool(agent):
        raise Refused(
            "Name either a model or an agent.",
            fix="`fleet nodes` lists the models.",
            code="no_model",
        )
    if agent:
        own = fleet.agent(agent).model
        if own is None:
            raise NotFound(
                f"The agent '{agent}' uses no model of fleet.yaml.",
                fix="Give it `model:` with a name under `models`.",
            )
        return [own]
    declared = fleet.model(model)
    if declared is None:
        names = list(dict.fromkeys(n for each in fleet.models.values() for n in each.names))
        fix = nearest(model, names) or f"Models: {', '.join(names) or 'none'}."
        raise NotFound(f"There is no model '{model[:60]}'.", fix=fix)
    return [declared]


_P = Permission
OPERATIONS = (
    Operation("node.list", ListNodes, _P.READ, list_nodes,
              "Show the nodes, their resident models and where requests go.", outside=True),
    Operation("model.list", ListModels, _P.READ, list_models,
              "List the models and the nodes that serve each.", outside=True),
    Operation("route.explain", ExplainRoute, _P.READ, explain_route,
              "Explain where a request would go now.", outside=True),
    Operation("model.warm", WarmModel, _P.SPAWN, warm_model,
              "Load models into their nodes' memory.", outside=True),
)  # fmt: skip
