"""`fleet view`: the filters of tasks that a team has saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import listing_group
from fleet.cli.terminal.view import Column, Result, Table, Text

if TYPE_CHECKING:
    from pathlib import Path

EMPTY = "No views are saved. Save one: fleet view save NAME FILTER"
team_option = click.option("--team", default="", help="The views of this team.")


@listing_group
def view() -> None:
    """List, save and remove views: named filters of the dashboard's list of tasks."""


@view.command("list", config=True)
@team_option
def list_(team: str, config: Path | None) -> Result:
    """List the team's views, which the dashboard shows above the tasks."""
    from fleet.operations.views import ListViews

    rows = connect(config=config).call(ListViews(team))
    cells = [(row.name, row.words, row.owner) for row in rows]
    columns = ("view", Column("filter", flexible=True, least=16), Column("saved by", spare=1))
    return Result("views", rows, Table(columns, cells, empty=EMPTY))


@view.command(config=True)
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="FILTER...")
@team_option
def save(*, name: str, words: tuple[str, ...], team: str, config: Path | None) -> Result:
    """Save FILTER under NAME, in place of an earlier one of that name.

    FILTER is words of a title, or `status:asking`, `agent:planner`, `label:ui` and the like.
    """
    from fleet.operations.views import SaveView

    row = connect(config=config).call(SaveView(name, " ".join(words), team))
    return Result("view", row, Text(f"Saved {row.name}: {row.words}"))


@view.command(config=True)
@click.argument("name")
@team_option
def remove(name: str, team: str, config: Path | None) -> Result:
    """Remove a view. No task changes."""
    from fleet.operations.views import RemoveView

    row = connect(config=config).call(RemoveView(name, team))
    return Result("view", row, Text(f"Removed {row.name}."))
