"""What the commands of a team share: options of lists, and how cells are written."""

from __future__ import annotations

import time
from typing import TypeAlias

import click

from fleet.cli.terminal.view import Column

Columns: TypeAlias = list[Column | str]


limit_option = click.option(
    "--limit",
    type=click.IntRange(1, 200),
    default=50,
    show_default=True,
    help="Show at most this many.",
)
team_option = click.option("--team", default="", help="The team. Default: yours.")


def when(at: int | None) -> str:
    from fleet.cli.terminal.human import ago

    return ago(at, time.time_ns() // 1000)


def one_line(text: str) -> str:
    return " ".join(text.split())
