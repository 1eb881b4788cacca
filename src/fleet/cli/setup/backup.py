"""`fleet backup`, `fleet restore` and `fleet archive`: the store in a file."""

from __future__ import annotations

import re
from pathlib import Path

import click

from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Result, Text
from fleet.domain.errors import BadInput

LIKE_AN_ID = re.compile(r"[a-z]-\d+(\.\d+)?")


@command(config=True)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def backup(*, file: Path, config: Path | None) -> Result:
    """Copy the store to FILE while Fleet runs; the copy is whole and checked.

    FILE has every prompt and message, so only you can read it. The keys of the server's tokens are
    not in it: keep `server.key` of the home as well.
    """
    from fleet.cli.terminal.progress import ProgressLine

    _check_is_file(file, "backup")
    with ProgressLine("Copying the store"):
        size = connect_here(config=config).back_up(file.absolute())
    data = {"file": str(file.absolute()), "bytes": size}
    return Result("backup", data, Text(f"Copied the store to {file} ({size:,} bytes)."))


@command(config=True)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def restore(*, file: Path, config: Path | None) -> Result:
    """Replace the store with FILE, which `fleet backup` made.

    Stop the supervisor and the server first. The old store is kept beside the new one: `fleet
    restore` of that file undoes this. Agents at work go on; the next `fleet run` settles the runs
    that the copy shows as running.
    """
    from fleet.cli.terminal.progress import ProgressLine

    with ProgressLine("Restoring the store"):
        before = connect_here(config=config).restore(file.absolute())
    data = {"file": str(file.absolute()), "before": str(before) if before else ""}
    lines = [f"Restored the store from {file}."]
    if before:
        lines.append(
            f"The store that was there is now {before}; to go back: fleet restore {before}"
        )
    return Result("restore", data, Text("\n".join(lines)))


@command(config=True)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--days",
    type=click.FloatRange(min=0),
    help="What ended or happened this many days ago. Default: as retention.tasks says.",
)
@click.option("--prune", is_flag=True, help="Then remove from the store what the file has.")
def archive(*, file: Path, days: float | None, prune: bool, config: Path | None) -> Result:
    """Write old tasks and events to FILE, one JSON object a line, compressed.

    FILE is compressed with gzip; if its name ends in .zst with zstd, which needs Python 3.14; if it
    ends in .jsonl not at all. What something that goes on needs is not old. With --prune nothing is
    removed before FILE is whole and on the disk.
    """
    from fleet.cli.terminal.progress import ProgressLine

    _check_is_file(file, "archive")
    with ProgressLine("Writing what is old"):
        done = connect_here(config=config).archive(file.absolute(), days=days, prune=prune)
    what = f"{len(done.tasks):,} tasks and {done.events:,} events"
    lines = [f"Wrote {what} to {file} ({done.bytes:,} bytes, {done.compression})."]
    if prune:
        lines.append(f"Removed {len(done.forgotten):,} tasks and these events from the store.")
    return Result("archive", done, Text("\n".join(lines)))


def _check_is_file(file: Path, command: str) -> None:
    """Raise when the name is that of a task or a run, which these commands do not take."""
    if file.parent == Path() and LIKE_AN_ID.fullmatch(file.name):
        raise BadInput(
            f"{file} looks like a task, and `fleet {command}` takes the FILE to write.",
            fix=f"Name a file: fleet {command} old.jsonl.gz"
            if command == "archive"
            else f"Name a file: fleet {command} store.db",
        )
