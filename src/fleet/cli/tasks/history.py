"""`fleet history` and `fleet gates`: what happened to a task, and what its gates printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from fleet.cli.tasks.tasks import task_argument
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.human import duration, moment
from fleet.cli.terminal.view import Cell, Column, Result, Stack, Table, Text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.cli.terminal.view import View
    from fleet.operations.insight.history import EventRow, GateRow

SECOND = 1_000_000


@command(config=True)
@task_argument
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1000), default=100, help="Show at most this many."
)
def history(task: str, limit: int, config: Path | None) -> Result:
    """List what happened to a task and its runs, the oldest first, and who did it."""
    from fleet.operations.insight.history import TaskEvents

    events = connect(config=config).call(TaskEvents(task, limit=limit))[::-1]
    return Result("events", events, _table(events))


def _table(events: Sequence[EventRow]) -> Table:
    columns = ("when", "what", Column("run", spare=1), "who", Column("more", flexible=True))
    rows = [
        (moment(each.at), each.type, each.run or None, each.actor, _data(each.data))
        for each in events
    ]
    return Table(columns, rows)


def _data(data: str) -> str:
    """Every value that is text or a number, with its name."""
    known = json.loads(data) if data else {}
    return ", ".join(
        f"{name}: {value}"
        for name, value in known.items()
        if isinstance(value, str | int) and value
    )


@command(config=True)
@task_argument
def gates(task: str, config: Path | None) -> Result:
    """Show what the gates of a task's runs printed, the newest last.

    They are kept on the machine where they ran.
    """
    from fleet.operations.insight.history import TaskGates

    rows = connect(config=config).call(TaskGates(task))
    parts: list[tuple[str, View]] = []
    for row in reversed(rows):
        parts += [("", Text(*_head(row))), ("", Text(row.output.rstrip() or "It printed nothing."))]
    view = Stack(parts) if parts else Text(f"No gate of {task} has run here.")
    return Result("gates", rows, view)


def _head(row: GateRow) -> Cell:
    took = duration(row.seconds * SECOND)
    if not row.ended:
        return Cell(f"{row.run}: {row.command} has run for {took}", "yellow")
    word = "passed" if row.code == 0 else f"failed with exit status {row.code}"
    return Cell(f"{row.run}: {row.command} {word} in {took}", "red" if row.code else "green")
