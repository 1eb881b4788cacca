"""`fleet claims`: files that a member has claimed for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.lists import (
    Columns,
    limit_option,
    team_option,
    when,
)
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import listing_group
from fleet.cli.terminal.human import moment
from fleet.cli.terminal.view import Column, Result, Table, Text

if TYPE_CHECKING:
    from pathlib import Path


@listing_group
def claims() -> None:
    """List and claim files, so that no two members change the same one."""


@claims.command("take", config=True)
@click.argument("path")
@click.option(
    "--seconds",
    type=click.IntRange(1, 86400),
    default=600,
    show_default=True,
    help="Seconds until the claim ends by itself.",
)
def take(*, path: str, seconds: int, config: Path | None) -> Result:
    """Claim the file PATH; refused while another member has it."""
    from fleet.operations.team.file_claims import ClaimFile

    claim = connect(config=config).call(ClaimFile(path, seconds))
    return Result("file", claim, Text(f"Claimed {claim.path} until {moment(claim.until)}."))


@claims.command(config=True)
@click.argument("path")
def release(*, path: str, config: Path | None) -> Result:
    """Release the file PATH."""
    from fleet.operations.team.file_claims import ReleaseFile

    done = connect(config=config).call(ReleaseFile(path))
    return Result("file", done, Text(f"Released {done.path}."))


@claims.command("list", config=True)
@team_option
@limit_option
def claims_list(*, team: str, limit: int, config: Path | None) -> Result:
    """List the files that are claimed now."""
    from fleet.operations.team.file_claims import ListFiles

    claims = connect(config=config).call(ListFiles(team=team, limit=limit))
    rows = [(f.path, f.holder, when(f.at), when(f.until)) for f in claims]
    columns: Columns = [Column("file", flexible=True), "holder", "since", "until"]
    return Result("files", claims, Table(columns, rows, empty="No files are claimed."))
