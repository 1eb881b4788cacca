"""`fleet swarms`, `swarm-create` and `swarm-kill`: groups of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.lists import Columns, limit_option, team_option
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Column, Pairs, Result, Table

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.operations.team.swarms import SwarmRow


@command(config=True)
@click.option("-a", "--all", "everything", is_flag=True, help="Also list swarms that have ended.")
@team_option
@limit_option
def swarms(*, everything: bool, team: str, limit: int, config: Path | None) -> Result:
    """List the swarms: groups of tasks that share a board and a limit of agents."""
    from fleet.operations.team.swarms import ListSwarms

    listed = connect(config=config).call(ListSwarms(team, everything, limit=limit))
    rows = [(s.id, s.name, s.state, f"{s.agents}/{s.max_agents}", s.tasks, s.team) for s in listed]
    columns: Columns = ["swarm", Column("name", flexible=True), "state", "agents", "tasks", "team"]
    return Result("swarms", listed, Table(columns, rows, empty="No swarms."))


@command("swarm-create", config=True)
@click.argument("name")
@click.argument("most", metavar="[MAX]", type=click.IntRange(1, 100), default=10)
@click.option("--description", default="", help="What the swarm is for.")
@team_option
def swarm_create(
    *, name: str, most: int, description: str, team: str, config: Path | None
) -> Result:
    """Create the swarm NAME, with at most MAX agents at work at once.

    Commands take it by its id. Add tasks to it: fleet add "Fix the login" --swarm t-1
    """
    from fleet.operations.team.swarms import CreateSwarm

    client = connect(config=config)
    project = client.project
    made = client.call(CreateSwarm(name, most, description, team, project))
    notes = (f'Commands take it by its id: fleet add "TITLE" --swarm {made.id}',)
    return Result("swarm", made, _swarm(made), notes)


@command("swarm-kill", config=True)
@click.argument("swarm")
def swarm_kill(*, swarm: str, config: Path | None) -> Result:
    """Cancel every task of a SWARM and end its agents; their work is kept."""
    from fleet.operations.team.swarms import KillSwarm, ShowSwarm

    client = connect(config=config)
    ended = client.call(KillSwarm(client.call(ShowSwarm(swarm)).id))
    return Result("swarm", ended, _swarm(ended))


def _swarm(row: SwarmRow) -> Pairs:
    return Pairs([
        ("swarm", row.id), ("name", row.name), ("state", row.state),
        ("agents", f"{row.agents}/{row.max_agents}"), ("tasks", row.tasks), ("team", row.team),
    ])  # fmt: skip
