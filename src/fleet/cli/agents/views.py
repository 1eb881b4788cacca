"""How agents look on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.human import SECOND, duration, money, tokens
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
COLUMNS = (
    Column("branch", flexible=True, least=12, wants=16),
    "task",
    "state",
    Column("coder", spare=2),
    Column("model", flexible=True, spare=6),
    Column("cpu", right=True, spare=8),
    Column("memory", right=True, spare=7),
    Column("time", right=True, spare=1),
    Column("tokens", right=True, spare=4),
    Column("cost", right=True, spare=5),
    Column("title", flexible=True, least=12, wants=24),
)


def agent_table(seen: Sequence[Seen], now: int, *, grouped: bool) -> View:
    if not grouped:
        return _table(seen, now, batch=any(s["batch"] for s in seen))
    groups: dict[str, list[Seen]] = {}
    for one in seen:
        groups.setdefault(one["batch"], []).append(one)
    if not groups:
        return _table((), now, batch=False)
    return Stack(
        [(f"Batch {name}" if name else "No batch", _table(group, now, batch=False))
         for name, group in sorted(groups.items())]
    )  # fmt: skip


def _table(seen: Sequence[Seen], now: int, *, batch: bool) -> Table:
    columns: list[Column | str] = [*COLUMNS, *([Column("batch", spare=3)] if batch else [])]
    rows = [[*_cells(s, now), *([s["batch"] or None] if batch else [])] for s in seen]
    return Table(columns, rows, empty="No agents are at work here.")


def _cells(seen: Seen, now: int) -> list[Value]:
    usage, began = seen["usage"], seen["started_at"]
    took = ((seen["ended_at"] or now) - began) // SECOND * SECOND if began else None
    state = shown_state(seen)
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
        seen["title"],
    ]


def shown_state(seen: Mapping[str, Any]) -> str:
    """What it does, while it runs; else how its task stands."""
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
        ("evidence", str(seen["by"])),
        *([("screen", str(seen["screen"]))] if seen.get("screen") else []),
        ("run", str(seen["run"]) or "none yet"),
    ]
    return Pairs(facts)
