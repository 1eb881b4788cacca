"""`fleet search`: find a task by what was asked or said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.completion import complete_tasks
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.human import ago, since_of
from fleet.cli.terminal.view import Cell, Column, Result, Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.operations.search import Hit

BEFORE = 16  # characters shown before the first match


@command(config=True)
@click.argument("text", nargs=-1, required=True)
@click.option("--task", default="", shell_complete=complete_tasks, help="Only in this task.")
@click.option("--here", is_flag=True, help="Only in tasks of this project.")
@click.option("--project", default="", help="Only in tasks of this project's directory.")
@click.option("--since", default="", help="Only what is newer: 2h, 7d, or 2026-01-31.")
@click.option("--team", default="", help="Only in tasks of this team.")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 200), default=20, help="Show at most this many."
)
def search(
    *,
    text: tuple[str, ...],
    task: str,
    here: bool,
    project: str,
    since: str,
    team: str,
    limit: int,
    config: Path | None,
) -> Result:
    """Search titles, prompts and transcripts for words.

    All words must be there, in any order, in upper or lower case. A word of three or more
    characters is also found as the beginning of a longer one. Nothing in TEXT is an operator.
    """
    from fleet.operations.search import FindText

    client = connect(config=config)
    where = client.project_or_cwd if here else project
    request = FindText(" ".join(text), task, where, team, since_of(since, client.now()), limit)
    hits = client.call(request)
    return Result("hits", hits, _table(hits, client.now()))


def _table(hits: Sequence[Hit], now: int) -> Table:
    columns = (
        "task",
        Column("title", flexible=True, least=12, spare=2, wants=20),
        "where",
        Column("when", spare=1),
        Column("match", flexible=True, least=24, wants=40),
    )
    rows = [
        (hit.task, hit.title, Cell(hit.run or hit.where, "dim"), ago(hit.at, now), marked(hit))
        for hit in hits
    ]
    return Table(columns, rows, empty="Nothing was found.")


def marked(hit: Hit) -> str:
    """The text with »marks« around the words, and not much before the first."""
    start = hit.marks[0].start if hit.marks else 0
    cut = hit.text.find(" ", start - BEFORE, start) + 1 if start > BEFORE else 0
    parts, last = (["…"] if cut else []), cut
    for mark in hit.marks:
        parts += [hit.text[last : mark.start], "»", hit.text[mark.start : mark.end], "«"]
        last = mark.end
    return "".join([*parts, hit.text[last:]])
