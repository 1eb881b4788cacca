"""How agents look on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.cli.tasks.views import PROJECT, lines_changed, project_names
from fleet.cli.terminal.human import SECOND, duration, money, tokens
from fleet.cli.terminal.measure import fit
from fleet.cli.terminal.render import Cell, Column, Pairs, Stack, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.cli.terminal.view import Style, Value, View
    from fleet.operations.tasks.show import TaskDetail

Seen = dict[str, Any]  # an agent's row with what was seen of it
STYLES: dict[str, Style] = {
    "working": "green",
    "waiting": "yellow",
    **dict.fromkeys(("permission", "panel", "first-start"), "yellow"),
    "idle": "dim",
    "exited": "dim",
    "unknown": "red",
}
LONGEST_SET_UP = 24  # characters of the command
COLUMNS = (
    Column("branch", flexible=True, least=12, wants=16),
    "task",
    "state",
    Column("coder", spare=3),
    Column("model", flexible=True, spare=6),
    Column("cpu", right=True, spare=8),
    Column("memory", right=True, spare=7),
    Column("time", right=True, spare=1),
    Column("tokens", right=True, spare=4),
    Column("cost", right=True, spare=1),
    Column("changes", right=True, spare=2),
    Column("title", flexible=True, least=12, wants=24),
)


def agent_table(seen: Sequence[Seen], now: int, *, grouped: bool, everywhere: bool = False) -> View:
    """`everywhere`: of all projects, so each names its own."""
    names = project_names(s["project"] for s in seen) if everywhere else None
    if not grouped:
        return _table(seen, now, batch=any(s["batch"] for s in seen), projects=names)
    groups: dict[str, list[Seen]] = {}
    for one in seen:
        groups.setdefault(one["batch"], []).append(one)
    if not groups:
        return _table((), now, batch=False, projects=None)
    return Stack(
        [(f"Batch {name}" if name else "No batch", _table(group, now, batch=False, projects=names))
         for name, group in sorted(groups.items())]
    )  # fmt: skip


def _table(
    seen: Sequence[Seen], now: int, *, batch: bool, projects: Mapping[str, str] | None
) -> Table:
    columns: list[Column | str] = [*COLUMNS, *([Column("batch", spare=3)] if batch else [])]
    rows = [[*_cells(s, now), *([s["batch"] or None] if batch else [])] for s in seen]
    if projects is not None:
        columns.insert(2, PROJECT)
        for row, one in zip(rows, seen, strict=True):
            row.insert(2, projects.get(one["project"]))
    return Table(columns, rows, empty="No agents are at work here.")


def _cells(seen: Seen, now: int) -> list[Value]:
    usage, began = seen["usage"], seen["started_at"]
    took = ((seen["ended_at"] or now) - began) // SECOND * SECOND if began else None
    state = _set_up(seen, now) or shown_state(seen)
    return [
        seen["branch"] or None,
        seen["task"],
        Cell(state, STYLES.get(state.split()[0], "")),
        seen["coder"],
        seen["model"] or None,
        f"{seen['cpu']:.0f}%" if seen["cpu"] is not None else None,
        size(seen["memory"]) if seen["memory"] else None,
        duration(max(0, took)) if took is not None else None,
        tokens(usage.input + usage.output) if usage.input + usage.output else None,
        money(usage.cost) if usage.cost else None,
        lines_changed(seen["added"], seen["removed"]),
        seen["title"],
    ]


def _set_up(seen: Seen, now: int) -> str:
    """The set-up command of its workspace that runs now, and for how long it has run."""
    if not seen.get("setup"):
        return ""
    since = (now - seen["setup_at"]) // SECOND * SECOND if seen["setup_at"] else 0
    return f"setting up: {fit(seen['setup'], LONGEST_SET_UP)} ({duration(max(0, since))})"


def shown_state(seen: Mapping[str, Any]) -> str:
    """What a running agent is doing; for another, the status of its task."""
    if str(seen["last"]).startswith("setting up: "):
        return "setting up"
    if not seen["doing"] or seen["ended_at"]:
        return str(seen["status"])
    return with_exit(seen)


def with_exit(seen: Mapping[str, Any]) -> str:
    status = seen.get("exit")
    return str(seen["doing"]) if status is None else f"{seen['doing']} {status}"


def size(count: int) -> str:
    return f"{count / (1 << 30):.1f}G" if count >= 1 << 30 else f"{count / (1 << 20):.0f}M"


def explanation(task: TaskDetail, seen: Mapping[str, Any]) -> View:
    facts: list[tuple[str, Value]] = [
        ("agent", f"{task.task.id}  {task.task.title}"),
        ("state", Cell(with_exit(seen), STYLES.get(str(seen["doing"]), ""))),
        *([("asks", str(seen["asks"]))] if seen.get("asks") else []),
        ("evidence", str(seen["by"])),
        *([("screen", str(seen["screen"]))] if seen.get("screen") else []),
        ("run", str(seen["run"]) or "none yet"),
        *([("route", _routed(task))] if task.task.route else []),
    ]
    return Pairs(facts)


def _routed(task: TaskDetail) -> str:
    who = task.task
    return f"routes.{who.route} matched: {who.agent}" + (f" with {who.model}" if who.model else "")
