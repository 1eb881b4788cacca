"""Nodes, what is resident on them, routes and warm-ups, as people and as programs read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.view import Cell, Column, Stack, Table, Text
from fleet.domain.nodes.inventory import absent, resident
from fleet.domain.nodes.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fleet.cli.terminal.view import Style, Value, View
    from fleet.domain.fleet import Agent, Fleet
    from fleet.domain.nodes.inventory import Seen, Warmth

STYLES: dict[str, Style] = {
    "online": "green",
    "offline": "red",
    "ok": "green",
    "failed": "red",
    "loading": "yellow",
    "open": "red",
    "probing": "yellow",
    "gentle": "yellow",
}
FOREVER = 2200  # Ollama says of a model that it keeps for ever that it goes in some far century


def seen_data(fleet: Fleet, seen: Seen) -> dict[str, Any]:
    inventory = seen.inventory
    loaded = list(inventory.resident or ()) if inventory else []
    return {
        "name": seen.node,
        "endpoint": fleet.nodes[seen.node].endpoint,
        "kind": inventory.kind if inventory else fleet.nodes[seen.node].kind,
        "status": seen.state.replace(" ", "_"),
        "error": seen.why or None,
        "version": (inventory.version or None) if inventory else None,
        "latency_ms": round(inventory.latency * 1000, 1) if inventory else None,
        "models": [model.name for model in inventory.held] if inventory else [],
        "loaded_models": [each.name for each in loaded],
        "resident": [each._asdict() for each in loaded],
        "held": [model._asdict() for model in inventory.held] if inventory else [],
        "busy": inventory.busy if inventory else None,
        "waiting": inventory.waiting if inventory else None,
        "slots": inventory.slots if inventory else None,
    }


def discovered(fleet: Fleet, seen: Sequence[Seen], *, verbose: bool) -> View:
    if verbose:
        columns: list[Column | str] = ["node", "status", "kind", "version"]
        columns += [Column("latency", right=True), "endpoint"]
        more = [Column("models", flexible=True), Column("error", flexible=True)]
        rows = [_verbose(fleet, each) for each in seen]
        return Stack([(f"Fleet: {fleet.name}", Table([*columns, *more], rows))])
    rows = [[each.node, _state(each), _models(each)] for each in seen]
    return Stack(
        [(f"Fleet: {fleet.name}", Table(["node", "status", Column("models", flexible=True)], rows))]
    )


def _verbose(fleet: Fleet, seen: Seen) -> list[Value]:
    data = seen_data(fleet, seen)
    return [
        seen.node,
        _state(seen),
        data["kind"],
        data["version"],
        _latency(seen),
        data["endpoint"] or None,
        ", ".join(data["models"]) or None,
        seen.why or None,
    ]


def _state(seen: Seen) -> Cell:
    return Cell(seen.state, STYLES.get(seen.state, "dim"))


def _models(seen: Seen) -> Value:
    """What it has, or why that is not known."""
    if seen.inventory is None:
        return Cell(seen.why, "dim")
    return ", ".join(model.name for model in seen.inventory.held) or Cell("no models yet", "dim")


def _latency(seen: Seen) -> str | None:
    return f"{seen.inventory.latency * 1000:.0f}ms" if seen.inventory else None


def advice(
    fleet: Fleet, seen: Sequence[Seen], unsaid: Collection[str], *, wrote: bool = False
) -> list[str]:
    """What the settings say that the nodes do not bear out."""
    kinds = {each.node: each.inventory.kind for each in seen if each.inventory is not None}
    rows = [
        f"{node} answers like {kind}, but fleet.yaml does not give its kind: `fleet discover --write` writes it."
        for node, kind in kinds.items()
        if kind != fleet.nodes[node].kind and node in unsaid and not wrote
    ]
    return rows + [
        f"The model {name} is not on its node {serving.node.name}, which has no {serving.upstream}"
        + (
            f": `ollama pull {serving.upstream}` there."
            if kind_of(kinds[serving.node.name]).is_ollama
            else "."
        )
        for name, serving in absent(fleet, seen)
    ]


def status_data(fleet: Fleet, seen: Sequence[Seen], relay: dict[str, Any] | None) -> dict[str, Any]:
    known = relay_nodes(fleet, relay)
    nodes = [seen_data(fleet, each) | {"relay": known.get(each.node)} for each in seen]
    return {
        "fleet": fleet.name,
        "nodes": nodes,
        "routes": [route for agent in fleet.agents.values() for route in _routes(agent, seen)],
        "relay": relay if known else None,
    }


def relay_nodes(fleet: Fleet, relay: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """By node, what the relay says of it; nothing when none runs, or that of another fleet."""
    nodes = relay.get("nodes") if relay else None
    return {
        name: facts
        for name, node in fleet.nodes.items()
        if isinstance(nodes, dict)
        and isinstance(facts := nodes.get(name), dict)
        and facts.get("endpoint") == node.endpoint
    }


def _routes(agent: Agent, seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """One for each node that serves the agent's model, best first."""
    if agent.model is None:
        return []
    states = {each.node: each for each in seen}
    return [
        {
            "agent": agent.name,
            "node": serving.node.name,
            "upstream": serving.upstream,
            "model": agent.model.name,
            "alias": agent.model.alias,
            "context": serving.context,
            "status": states[serving.node.name].state.replace(" ", "_"),
            "resident": _is_resident(states[serving.node.name], serving.upstream),
        }
        for serving in agent.model.servings
    ]


def _is_resident(seen: Seen, upstream: str) -> bool | None:
    if seen.inventory is None or seen.inventory.resident is None:
        return None
    return resident(seen.inventory, upstream) is not None


def status_view(fleet: Fleet, seen: Sequence[Seen], relay: dict[str, Any] | None) -> Stack:
    known = relay_nodes(fleet, relay)
    columns: list[Column | str] = ["node", "status", "endpoint", Column("latency", right=True)]
    columns += [Column("busy", right=True), *(["breaker"] if known else [])]
    rows: list[list[Value]] = []
    for each in seen:
        facts = known.get(each.node, {})
        breaker = str(facts.get("breaker") or "")
        more = [Cell(breaker, STYLES.get(breaker, ""))] if known else []
        where = fleet.nodes[each.node].endpoint or None
        rows.append(
            [each.node, _state(each), where, _latency(each), _busy(fleet, each, facts), *more]
        )
        rows[-1].append(_models(each))
    table = Table([*columns, Column("models", flexible=True)], rows)
    return Stack(
        [
            (f"Fleet: {fleet.name}", table),
            ("Resident:", _residents(seen)),
            ("Agent routing:", Text("\n".join(_arrows(fleet, seen)))),
        ]
    )


def _busy(fleet: Fleet, seen: Seen, relay: dict[str, Any]) -> str | None:
    """Requests at work, of the slots there are; the relay knows its own, some nodes theirs."""
    inventory = seen.inventory
    busy = inventory.busy if inventory and inventory.busy is not None else relay.get("busy")
    if not isinstance(busy, int):
        return None
    servings = {s for m in fleet.models.values() for s in m.servings if s.node.name == seen.node}
    declared = fleet.nodes[seen.node].max_parallel or sum(s.slots for s in servings)
    slots = (inventory.slots if inventory else None) or declared
    waiting = relay.get("waiting") or (inventory.waiting if inventory else 0)
    more = f" +{waiting}" if isinstance(waiting, int) and waiting else ""
    return f"{busy}/{slots}{more}" if slots else f"{busy}{more}"


def _residents(seen: Sequence[Seen]) -> Table:
    columns: list[Column | str] = ["node", "model", Column("memory", right=True)]
    rows: list[list[Value]] = [
        [each.node, r.name, _size(r.memory), r.context or None, _until(r.until)]
        for each in seen
        for r in (each.inventory.resident or () if each.inventory else ())
    ]
    columns += [Column("context", right=True), "until"]
    return Table(columns, rows, empty="No models are resident. `fleet warmup` loads them.")


def _size(count: int) -> str | None:
    return f"{count / 1e9:.1f} GB" if count else None


def _until(until: str) -> str | None:
    year = until[:4]
    if not year.isdecimal():
        return None
    return "for ever" if int(year) >= FOREVER else until[:16].replace("T", " ")


def _arrows(fleet: Fleet, seen: Sequence[Seen]) -> list[str]:
    """`planner -> mac-mini -> qwen2.5-coder:7b -> claude-haiku-local`, one line per serving."""
    rows = [route for agent in fleet.agents.values() for route in _routes(agent, seen)]
    keys = ("agent", "node", "upstream")
    wide = {key: max((len(row[key]) for row in rows), default=0) for key in keys}
    return [
        " -> ".join([*(row[key].ljust(wide[key]) for key in keys), row["alias"]])
        + (f"  ({row['status']})" if row["status"] == "offline" else "")
        for row in rows
    ] or ["No agent has a model of this fleet."]


def warm_data(row: Warmth) -> dict[str, Any]:
    data = row._asdict()
    data["resident"] = row.resident._asdict() if row.resident else None
    return data | {"seconds": round(row.seconds, 2), "why": row.why or None}


def warm_view(rows: Sequence[Warmth], *, seconds: bool = True, ended: bool = False) -> View:
    if ended:
        good = sum(row.state == "ok" for row in rows)
        return Text(f"{good} of {len(rows)} are resident.")
    columns: list[Column | str] = ["model", "node", "upstream", "state"]
    columns += [Column("detail", flexible=True)]
    cells: list[list[Value]] = [
        [
            row.model,
            row.node,
            row.upstream,
            Cell(row.state, STYLES.get(row.state, "dim")),
            _detail(row, seconds=seconds),
        ]
        for row in rows
    ]
    return Stack([("Warming models:", Table(columns, cells))])


def _detail(row: Warmth, *, seconds: bool) -> str | None:
    if row.state == "loading":
        return f"{row.seconds:.0f} s" if seconds else None
    if row.resident is None:
        return row.why or None
    resident = row.resident
    parts = [_size(resident.memory), f"context {resident.context}" if resident.context else None]
    if 0 < resident.context < row.context:
        parts.append(f"of the {row.context} requested")
    return ", ".join(filter(None, [*parts, f"{row.seconds:.1f} s"]))
