"""`fleet alert`: tell the leads of a team that something is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Result, Text

if TYPE_CHECKING:
    from pathlib import Path


@command(config=True)
@click.argument("text")
@click.option("--team", default="", help="The team. Default: yours.")
@click.option("--notice", is_flag=True, help="Send news rather than trouble, as a notifier does.")
@click.option("--everywhere", is_flag=True, help="Tell the coordinators of all teams, too.")
def alert(*, text: str, team: str, notice: bool, everywhere: bool, config: Path | None) -> Result:
    """Send TEXT to the leads of a team, as mail and as a notice. For monitors and coordinators."""
    from fleet.operations.messages.alerts import RaiseAlert, SendNotice

    if notice and everywhere:
        raise click.UsageError("--everywhere goes with alerts: leave out --notice.")
    request = SendNotice(text, team) if notice else RaiseAlert(text, team, everywhere)
    row = connect(config=config).call(request)
    who = ", ".join(row.to) or "nobody: no lead of this team has used the server yet"
    return Result("alert", row, Text(f"Alerted {who}."))
