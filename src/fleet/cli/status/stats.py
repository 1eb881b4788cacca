"""`fleet stats` and `fleet budgets`: what came of the work, and what it may cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.human import DAY, SECOND, clock, duration, money, since_of, tokens
from fleet.cli.terminal.view import Column, Result, Stack, Table
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.cli.terminal.view import Value, View
    from fleet.domain.spending.stats import StatRow, Stats
    from fleet.operations.compute.hosts import LimitRow
    from fleet.operations.insight.usage import BudgetRow

NUMBERS = ("done", "landed", "failed", "runs", "cost", "tokens", "worked", "waited")
SPARE = {"runs": 3, "tokens": 2}  # left out on a narrow terminal, the highest first


@command(config=True)
@click.option("--day", is_flag=True, help="Since midnight.")
@click.option("--week", is_flag=True, help="The last seven days. This is the default.")
@click.option("--since", default="", help="Since then: 2h, 30d, or 2026-01-31.")
@click.option("--here", is_flag=True, help="Only tasks of this project.")
@click.option("--team", default="", help="Only tasks of this team.")
def stats(
    *, day: bool, week: bool, since: str, here: bool, team: str, config: Path | None
) -> Result:
    """Count what was done, what it cost, and how long it waited for you.

    A task counts once, with how it ended last. LANDED counts tasks whose work was merged, WORKED
    the time that agents worked, WAITED the time that tasks had an open question or were in review.
    """
    from fleet.operations.tasks.stats import ShowStats

    if sum((day, week, bool(since))) > 1:
        raise BadInput("--day, --week and --since cannot be used together.", fix="Give one.")
    client = connect(config=config)
    now = client.now()
    east = time.localtime(now // SECOND).tm_gmtoff // 60
    start = _midnight(now, east) if day else since_of(since, now) or _midnight(now - 6 * DAY, east)
    project = client.project_or_cwd if here else ""
    reply = client.call(ShowStats(start, project=project, team=team, east=east))
    return Result("stats", reply, stats_view(reply))


def _midnight(at: int, east: int) -> int:
    local = at + east * 60 * SECOND
    return at - local % DAY


def stats_view(stats: Stats) -> View:
    groups = {"day": stats.days, "agent": stats.agents, "coder": stats.coders}
    groups["project"] = stats.projects
    if not stats.days:
        return Table(["day"], [], empty="Nothing was done in that time.")
    parts: list[tuple[str, View]] = [
        ("", _table(name, rows, [stats.total] if name == "day" and len(rows) > 1 else []))
        for name, rows in groups.items()
        if len(rows) > 1 or name == "day"
    ]
    return Stack(parts)


def _table(title: str, rows: Sequence[StatRow], total: Sequence[StatRow] = ()) -> Table:
    columns = [Column(title, flexible=True, least=10)]
    columns += [Column(name, right=True, spare=SPARE.get(name, 0)) for name in NUMBERS]
    cells = [_cells(row, row.name or "-") for row in rows]
    return Table(columns, [*cells, *(_cells(row, "all") for row in total)])


def _cells(row: StatRow, name: str) -> list[Value]:
    return [
        name,
        row.done,
        row.landed,
        row.failed,
        row.runs,
        money(row.cost) if row.cost else None,
        tokens(row.tokens) if row.tokens else None,
        duration(row.worked // SECOND * SECOND) if row.worked else None,
        duration(row.waited // SECOND * SECOND) if row.waited else None,
    ]


@command(config=True)
@click.option("--here", is_flag=True, help="Only tasks of this project.")
@click.option("--team", default="", help="Only tasks of this team.")
def budgets(*, here: bool, team: str, config: Path | None) -> Result:
    """List what the running tasks have spent of what they may, the most expensive first.

    Limits that were reached, such as the rate limit of a credential, are named below.
    """
    from fleet.operations.compute.hosts import ListLimits
    from fleet.operations.insight.usage import ListBudgets

    client = connect(config=config)
    rows = client.call(ListBudgets(client.project_or_cwd if here else "", team))
    columns = [Column("task"), Column("title", flexible=True, least=12), Column("agent", spare=1)]
    columns += [Column(name, right=True) for name in ("cost", "a minute", "tokens", "time")]
    cells = [_budget(row) for row in rows]
    notes = [_limit(row) for row in client.call(ListLimits())]
    return Result("budgets", rows, Table(columns, cells, empty="Nothing runs."), notes)


def _limit(row: LimitRow) -> str:
    why = f": {row.why}" if row.why else ""
    return f"Nothing that needs {row.name} starts before {clock(row.until)}{why}"


def _budget(row: BudgetRow) -> list[Value]:
    time_ = _of(duration(row.seconds_spent * SECOND), duration(row.seconds * SECOND), row.seconds)
    cost = _of(money(row.cost_spent), money(row.cost), row.cost)
    count = _of(tokens(row.tokens_spent), tokens(row.tokens), row.tokens)
    burn = money(row.burn) if row.burn else ""
    return [row.task, row.title, row.agent, cost, burn, count, time_]


def _of(spent: str, limit: str, limited: int) -> str:
    return f"{spent} of {limit}" if limited else spent
