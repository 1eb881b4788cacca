"""`fleet recommend`: which model belongs on which node, and which agent to which model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Column, Result, Stack, Table, Text

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.app import App
    from fleet.app.compute.recommend import Advising
    from fleet.cli.terminal.view import Value, View
    from fleet.domain.placement.candidates import Advice, AgentPlacement, SettingChange


@command(config=True)
@click.option("--apply", "write", is_flag=True, help="Write the change to fleet.yaml.")
def recommend(*, write: bool, config: Path | None) -> Result:
    """Suggest which node should serve which model, and which model each agent should use.

    Fleet first checks what fits into each node's memory with its context, then the speed measured
    by `fleet benchmark` and how well `fleet eval` saw each model do the agent's jobs, then which model
    answers when a node is down. The suggestion is a diff of
    fleet.yaml with a reason for every line. Only --apply writes it; comments are kept.
    """
    from fleet.app.compute.benchmark import Benchmarks
    from fleet.app.compute.recommend import Advising
    from fleet.config.loader import display_path

    app = connect_here(config=config).app
    advising = Advising(app, Benchmarks(app))
    advice = advising.advise()
    name = display_path(advising.file, app.cwd)
    diff = _change(app, advising, advice, name, write=write) if advice.lines else ""
    data = {
        "file": str(advising.file),
        "applied": write and bool(advice.lines),
        "changes": [_data(line) for line in advice.lines],
        "diff": diff,
        "agents": [seat._asdict() for seat in advice.seats],
        "nodes": [each._asdict() for each in advice.fillings],
    }
    notes = [*advice.notes]
    if advice.lines:
        done = f"Written to {name}. Run `fleet generate`, then `fleet up`, to apply it."
        notes.append(done if write else "`fleet recommend --apply` writes it.")
    return Result("recommend", data, _view(advice, diff), notes=notes)


def _change(app: App, advising: Advising, advice: Advice, name: str, *, write: bool) -> str:
    """The difference that it makes to the file."""
    from difflib import unified_diff

    from fleet.app.compute.recommend import changes_of
    from fleet.config.commands.set import SettingFiles, apply, rewritten

    changes = changes_of(advice)
    before = advising.file.read_bytes().decode("utf-8") if advising.file.exists() else ""
    after = rewritten(before, changes, name=name)
    if write:
        context = SettingFiles(app.cwd, app.home.path, app.env)
        apply(changes, file=advising.file, layer=advising.layer, context=context)
    lines = unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", n=2, lineterm=""
    )
    return "".join(f"{line}\n" for line in lines)


def _data(line: SettingChange) -> dict[str, Any]:
    return {"setting": ".".join(line.path), "was": line.was, "value": line.value, "why": line.why}


NOTHING_BETTER = "There is nothing to improve."
NOTHING_KNOWN = (
    "Nothing can be compared yet: `fleet benchmark` measures the models of nodes that answer."
)


def _view(advice: Advice, diff: str) -> View:
    seats: list[list[Value]] = [
        [seat.agent, seat.model, ", ".join(seat.nodes), _quality(seat), _turn(seat)]
        for seat in advice.seats
    ]
    fillings: list[list[Value]] = [
        [each.node, _size(each.needed), _size(each.memory), ", ".join(each.models) or None]
        for each in advice.fillings
    ]
    if advice.lines:
        reasons = [line for each in advice.lines for line in (_heading(each), f"  {each.why}")]
        parts: list[tuple[str, View]] = [("", Text(diff)), ("Why:", Text("\n".join(reasons)))]
    else:
        measured = any(seat.seconds for seat in advice.seats)
        parts = [("", Text(NOTHING_BETTER if measured else NOTHING_KNOWN))]
    agents: list[Column | str] = [
        "agent",
        "model",
        Column("nodes", flexible=True),
        Column("its jobs", right=True),
        Column("a turn", right=True),
    ]
    memory = [Column("needed", right=True), Column("memory", right=True)]
    nodes: list[Column | str] = ["node", *memory, Column("models", flexible=True)]
    return Stack([*parts, ("Agents:", Table(agents, seats)), ("Nodes:", Table(nodes, fillings))])


def _heading(line: SettingChange) -> str:
    value = ", ".join(line.value) if isinstance(line.value, tuple) else line.value
    return f"{'.'.join(line.path)}: {value}"


def _quality(seat: AgentPlacement) -> str | None:
    return None if seat.quality is None else f"{seat.quality:.0%}"


def _turn(seat: AgentPlacement) -> str | None:
    return f"{seat.seconds:.3g} s" if seat.seconds else None


def _size(count: int) -> str | None:
    return f"{count / (1 << 30):.1f} GB" if count else None
