"""Nodes, what is resident on them, routes and warm-ups, as people and as programs read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.view import Cell, Column, Stack, Table, Text
from fleet.domain.nodes.breaker import shut_off
from fleet.domain.nodes.inventory import absent, plain_name
from fleet.domain.nodes.kinds import kind_of
from fleet.operations.compute.nodes import node_row, nodes_of, relay_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fleet.cli.terminal.view import Style, Value, View
    from fleet.domain.fleet import Fleet
    from fleet.domain.nodes.inventory import SeenNode, Warmth
    from fleet.operations.compute.nodes import NodeRow

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


def discovered(fleet: Fleet, seen: Sequence[SeenNode], *, verbose: bool) -> View:
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


def _verbose(fleet: Fleet, seen: SeenNode) -> list[Value]:
    row = node_row(fleet, seen)
    return [
        seen.node,
        _state(seen),
        row.kind,
        row.version,
        _latency(seen),
        row.endpoint or None,
        ", ".join(row.models) or None,
        seen.why or None,
    ]


def _state(seen: SeenNode) -> Cell:
    return Cell(seen.state, STYLES.get(seen.state, "dim"))


def _models(seen: SeenNode, facts: Mapping[str, Any] | None = None) -> Value:
    """A node's models, with those that are shut off; or why its models are unknown."""
    if seen.inventory is None:
        return Cell(seen.why, "dim")
    shut = {plain_name(name): f" ({why})" for name, why in shut_off(facts)}
    named = [model.name + shut.get(plain_name(model.name), "") for model in seen.inventory.held]
    return ", ".join(named) or Cell("no models yet", "dim")


def _latency(seen: SeenNode) -> str | None:
    return f"{seen.inventory.latency * 1000:.0f}ms" if seen.inventory else None


def advice(
    fleet: Fleet, seen: Sequence[SeenNode], unsaid: Collection[str], *, wrote: bool = False
) -> list[str]:
    """Notes on settings that do not agree with what the nodes report."""
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


def status_data(
    fleet: Fleet, seen: Sequence[SeenNode], relay: dict[str, Any] | None
) -> dict[str, Any]:
    """The nodes as JSON, like the reply of `node.list`."""
    rows = nodes_of(fleet, seen, relay)
    return {name: getattr(rows, name) for name in ("fleet", "nodes", "routes", "relay")}


def status_view(fleet: Fleet, seen: Sequence[SeenNode], relay: dict[str, Any] | None) -> Stack:
    known = relay_nodes(fleet, relay)
    columns: list[Column | str] = ["node", "status", "endpoint", Column("latency", right=True)]
    columns += [Column("busy", right=True), *(["breaker"] if known else [])]
    rows: list[list[Value]] = []
    for each in seen:
        facts = known.get(each.node, {})
        more = [_breaker(facts)] if known else []
        where = fleet.nodes[each.node].endpoint or None
        rows.append(
            [
                each.node,
                _state(each),
                where,
                _latency(each),
                _busy(node_row(fleet, each, facts)),
                *more,
            ]
        )
        rows[-1].append(_models(each, facts))
    table = Table([*columns, Column("models", flexible=True)], rows)
    return Stack(
        [
            (f"Fleet: {fleet.name}", table),
            ("Resident:", _residents(seen)),
            ("Agent routing:", Text("\n".join(_arrows(fleet, seen)))),
        ]
    )


def _breaker(facts: Mapping[str, Any]) -> Cell:
    """Why the relay sends the node no requests: it is shut off, or it asked for a pause."""
    breaker, rests = str(facts.get("breaker") or ""), facts.get("resting") or 0
    if breaker == "closed" and rests >= 1:
        return Cell(f"resting for {rests:.0f} s: {facts.get('why')}", "yellow")
    return Cell(breaker, STYLES.get(breaker, ""))


def _busy(row: NodeRow) -> str | None:
    """The requests at work and the slots, as `2/4`, as far as the node or the relay reports them."""
    if row.busy is None:
        return None
    more = f" +{row.waiting}" if row.waiting else ""
    return f"{row.busy}/{row.slots}{more}" if row.slots else f"{row.busy}{more}"


def _residents(seen: Sequence[SeenNode]) -> Table:
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


def _arrows(fleet: Fleet, seen: Sequence[SeenNode]) -> list[str]:
    """`planner -> mac-mini -> qwen2.5-coder:7b -> claude-haiku-local`, one line per serving."""
    routes = nodes_of(fleet, seen, None).routes
    rows = [(route.agent, route.node, route.upstream) for route in routes]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        " -> ".join(
            [*(word.ljust(size) for word, size in zip(row, wide, strict=True)), route.alias]
        )
        + (f"  ({route.status})" if route.status == "offline" else "")
        for row, route in zip(rows, routes, strict=True)
    ] or ["No agent uses a model of fleet.yaml."]


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
