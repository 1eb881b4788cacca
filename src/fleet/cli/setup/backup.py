"""`fleet backup`: a copy of the store, while Fleet runs."""

from __future__ import annotations

from pathlib import Path

import click

from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Result, Text


@command(config=True)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def backup(*, file: Path, config: Path | None) -> Result:
    """Copy the store to FILE while Fleet runs; the copy is whole and checked.

    FILE has every prompt and message, so only you can read it. The keys of the server's tokens are
    not in it: keep `server.key` of the home as well.
    """
    from fleet.cli.terminal.connect import connect_here

    size = connect_here(config=config).back_up(file.absolute())
    data = {"file": str(file.absolute()), "bytes": size}
    return Result("backup", data, Text(f"Copied the store to {file} ({size:,} bytes)."))
