"""`fleet benchmark`: how fast every node is at its models, measured, ranked and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.view import Cell, Column, Result, Stack, Table
from fleet.domain.errors import NotFound, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.app.compute.benchmark import Benchmarks, BenchmarkSize, BenchmarkStep
    from fleet.cli.terminal.view import Style, Value, View
    from fleet.domain.fleet import Fleet, Serving
    from fleet.domain.nodes.benchmark import Measured

STYLES: dict[str, Style] = {"ok": "green", "failed": "red", "measuring": "yellow"}
BILL = "{0} costs money, so it is measured only when it is named: --node {0}."
FAR = "{0} is a hosted API, whose address only the gateway knows: it is not measured."


@command(config=True)
@click.option("--node", metavar="NAME", help="Only this node.")
@click.option("--model", metavar="NAME", help="Only this model, by its name or alias.")
@click.option(
    "--prompt-tokens",
    type=click.IntRange(min=32, max=1_000_000),
    default=512,
    help="The length of the prompts, about.",
)
@click.option(
    "--output-tokens",
    type=click.IntRange(min=8, max=100_000),
    default=64,
    help="The length of the replies.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1, max=100),
    default=3,
    help="How often to repeat each measurement.",
)
@click.option("--cold", is_flag=True, help="Unload each model first, to measure how long it loads.")
def benchmark(
    *, node: str | None, model: str | None, prompt_tokens: int, output_tokens: int, repeat: int,
    cold: bool, config: Path | None,
) -> Result:  # fmt: skip
    """Measure how fast every node is at its models.

    The nodes are measured directly and in parallel, the models of one node one after the other.
    Each prompt starts with random text, so that no cache has it, and is then sent a second time.
    Speeds are the node's own figures if it reports them, otherwise Fleet's clock; the median of all
    repeats counts. `fleet recommend` uses the results. Exit status 1 if a measurement failed.
    """
    from fleet.app.compute.benchmark import Benchmarks, BenchmarkSize

    made = Benchmarks(connect_here(config=config).app)
    wanted, left = _wanted(made.compute.fleet, node, model)
    size = BenchmarkSize(prompt_tokens, output_tokens, repeat, cold)
    rows = _measure(made, wanted, size)
    notes = [(BILL if made.compute.fleet.nodes[n].endpoint else FAR).format(n) for n in left]
    if any(not row.why for row in rows):
        notes.append(f"Kept in {made.saved.file}.")
    failed = any(row.why for row in rows)
    data, view = _data(rows, size), _view(rows, size)
    return Result("benchmark", data, view, notes=notes, exit_status=1 if failed else 0)


def _wanted(
    fleet: Fleet, node: str | None, model: str | None
) -> tuple[list[tuple[str, Serving]], list[str]]:
    """The models to measure on each node, and the nodes that are left out."""
    from fleet.cli.compute.nodes import named_model
    from fleet.domain.nodes.kinds import costs_money

    if node and node not in fleet.nodes:
        fix = nearest(node, fleet.nodes) or f"Nodes: {', '.join(fleet.nodes)}."
        raise NotFound(f"There is no node '{node}'.", fix=fix)
    models = [named_model(fleet, model)] if model else fleet.own_models
    chosen = [
        (each.name, serving)
        for each in models
        for serving in each.servings
        if node in {None, serving.node.name}
    ]
    if not chosen:
        what = f"No model{f' {model}' * bool(model)} is served{f' by {node}' * bool(node)}."
        raise NotFound(what, fix="`models:` in fleet.yaml says which node serves which model.")
    dear = [
        s.node.name for _, s in chosen if costs_money(s.node) and not (node and s.node.endpoint)
    ]
    chosen = [(name, serving) for name, serving in chosen if serving.node.name not in dear]
    return chosen, list(dict.fromkeys(dear))


def _measure(
    made: Benchmarks, wanted: Sequence[tuple[str, Serving]], size: BenchmarkSize
) -> list[Measured]:
    from fleet.cli.terminal.live import Live

    measuring = made.measure(wanted, size)
    try:
        if wants_json():
            while not measuring.wait(1.0):
                pass
        else:
            with Live() as live:
                while not measuring.wait(0.2):
                    if live.redraws:
                        live.update(_progress(measuring.steps()))
                if live.redraws:
                    live.update(_progress(measuring.steps()))
    finally:
        done = [step.row for step in measuring.steps() if step.state in {"ok", "failed"}]
        if any(not row.why for row in done):
            made.saved.add(done)  # also what an interrupt leaves
    return done


def _progress(steps: Sequence[BenchmarkStep]) -> View:
    rows: list[list[Value]] = [
        [
            step.row.model,
            step.row.node,
            Cell(step.state, STYLES.get(step.state, "dim")),
            step.row.why or step.doing or None,
        ]
        for step in steps
    ]
    return Stack(
        [("Measuring:", Table(["model", "node", "state", Column("detail", flexible=True)], rows))]
    )


def _data(rows: Sequence[Measured], size: BenchmarkSize) -> dict[str, Any]:
    from fleet.domain.nodes.benchmark import data_of, ranked, seconds

    measured = [
        data_of(row)
        | {
            "rank": rank or None,
            "seconds": round(seconds(row.pace, size.prompt, size.output), 4) or None,
            "why": row.why or None,
        }
        for rank, row in ranked(rows, size.prompt, size.output)
    ]
    options = {"prompt_tokens": size.prompt, "output_tokens": size.output, "repeat": size.repeat}
    return {"asked": options, "measured": measured}


def _view(rows: Sequence[Measured], size: BenchmarkSize) -> View:
    from fleet.domain.nodes.benchmark import ranked

    order = ranked(rows, size.prompt, size.output)
    right = ("load", "prefill", "decode", "first token", "cached", "in all")
    columns: list[Column | str] = ["model", "rank", "node"]
    columns += [*(Column(name, right=True) for name in right), Column("detail", flexible=True)]
    cells = [_cells(rank, row, size) for rank, row in order]
    table = Table(columns, cells, empty="Nothing was measured.")
    good = [row for _, row in order if not row.why]
    parts: list[tuple[str, View]] = [("", table)]
    for heading, name, unit in (
        ("Decode, tokens per second (longer is better):", "decode", ""),
        ("Prefill, tokens per second (longer is better):", "prefill", ""),
        ("Time to first token, seconds (shorter is better):", "ttft", " s"),
    ):
        if good:
            parts.append((heading, _plot(good, name, unit)))
    return Stack(parts)


def _cells(rank: int, row: Measured, size: BenchmarkSize) -> list[Value]:
    from fleet.domain.nodes.benchmark import seconds

    if row.why:
        return [row.model, None, row.node, *[None] * 6, Cell(row.why, "red")]
    rank_cell = Cell(str(rank), "green" if rank == 1 else "")
    speeds = [f"{speed:.1f}/s" if speed else None for speed in (row.prefill, row.decode)]
    times = (row.ttft, row.ttft_cached, seconds(row.pace, size.prompt, size.output))
    durations = [_seconds(each) for each in times]
    detail = f"{row.upstream}, {row.prompt} + {row.output} tokens"
    return [row.model, rank_cell, row.node, _seconds(row.load), *speeds, *durations, detail]


def _seconds(count: float) -> str | None:
    if not count:
        return None
    return f"{count:.2f} s" if count < 10 else f"{count:.0f} s"


def _plot(rows: Sequence[Measured], name: str, unit: str) -> View:
    from fleet.cli.terminal.bars import Bar, plot

    values = [float(getattr(row, name)) for row in rows]
    best = min(values) if name == "ttft" else max(values)
    bars = [
        Bar(
            (row.model, row.node),
            value,
            f"{value:.2f}{unit}" if unit else f"{value:.1f}",
            "green" if value == best else "",
        )
        for row, value in zip(rows, values, strict=True)
    ]
    return plot(("model", "node"), bars)
