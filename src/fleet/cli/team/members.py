"""`fleet teams`: the members of a team."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.lists import Columns, limit_option, when
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Column, Result, Table

if TYPE_CHECKING:
    from pathlib import Path


@command(config=True)
@click.argument("team", required=False, default="")
@limit_option
def teams(*, team: str, limit: int, config: Path | None) -> Result:
    """List the members of a TEAM."""
    from fleet.operations.team.members import BeSeen, ListMembers

    client = connect(config=config)
    client.call(BeSeen())
    members = client.call(ListMembers(team, limit=limit))
    rows = [(m.name, m.role, m.team, when(m.seen_at)) for m in members]
    columns: Columns = [Column("name", flexible=True), "role", "team", "seen"]
    return Result("members", members, Table(columns, rows, empty="No members have been seen yet."))
