"""`fleet store`: the database in which tasks and runs are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import group
from fleet.cli.terminal.view import Result, Text

if TYPE_CHECKING:
    from pathlib import Path


@group()
def store() -> None:
    """Copy the store to another kind of store, and bring its tables up to this release."""


@store.command("copy", config=True)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "--force", is_flag=True, help="Copy it as it is now, even if a supervisor or agents use it."
)
def copy(*, source: str, target: str, force: bool, config: Path | None) -> Result:
    """Copy everything in the store FROM to the empty store TO, of any kind, and compare them.

    Both are addresses as `store.url` has them; `os.environ/NAME` takes one from that variable. Ids,
    versions and the numbers of events stay the same. TO cannot be opened until all of it is there; if
    the command is interrupted, run it again. Transcripts, worktrees and keys are files of each home
    and are not copied.
    """
    from fleet.cli.terminal.progress import ProgressLine

    with ProgressLine("Copying the store") as progress:
        done = connect_here(config=config).copy_store(
            source, target, force=force, progress=lambda table, rows: progress.at(f"{table} {rows}")
        )
    tasks, runs, events = (done.counts.get(name, 0) for name in ("task", "run", "event"))
    lines = [
        f"Copied {tasks:,} tasks, {runs:,} runs and {events:,} events. Both stores hold the same.",
        f"The digest over all of it is {done.digest[:16]}.",
        "To use the copy, set `store.url` to its address on every machine.",
    ]
    if done.missed:
        lines.insert(
            1,
            f"{done.missed:,} events were written to the source during the copy, and are not in it.",
        )
    return Result("store_copy", done, Text("\n".join(lines)))


@store.command("migrate", config=True)
@click.option(
    "--check", is_flag=True, help="Only say what would be done: exit status 1 if anything."
)
def migrate(*, check: bool, config: Path | None) -> Result:
    """Bring the store's tables up to what this release knows.

    Every command does this when it opens the store, one process at a time, others wait. Do it
    yourself to choose the moment: a machine with a release that cannot write the new tables stops
    until it is upgraded.
    """
    schema, text, fix = connect_here(config=config).store_schema(migrate=not check)
    words = "\n".join(filter(None, (text, f"  {fix}" if fix else "")))
    needed = check and (schema.is_behind or schema.may != "write")
    return Result("store_schema", schema, Text(words), exit_status=int(needed))
