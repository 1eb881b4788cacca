"""`fleet memory`: what members of a team store to remember."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.lists import (
    Columns,
    limit_option,
    one_line,
)
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import listing_group
from fleet.cli.terminal.human import moment
from fleet.cli.terminal.view import Column, Pairs, Result, Table, Text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.operations.team.memory import MemoryRow


@listing_group
def memory() -> None:
    """Store facts for the team and for later runs, and find them again."""


@memory.command(config=True)
@click.argument("key")
@click.argument("value", nargs=-1, required=True)
@click.option("--type", "kind", default="fact", help="fact, decision, pattern or error.")
@click.option("--tag", "tags", multiple=True, help="A tag of the memory. Repeatable.")
def store(
    *, key: str, value: tuple[str, ...], kind: str, tags: tuple[str, ...], config: Path | None
) -> Result:
    """Store VALUE under KEY, replacing the old value."""
    from fleet.operations.team.memory import StoreMemory

    kept = connect(config=config).call(StoreMemory(key, " ".join(value), kind, tags))
    return Result("memory", kept, Text(f"Stored {kept.key} ({kept.type})."))


@memory.command(config=True)
@click.argument("key")
@click.option("--agent", default="", help="The member who stored it. Default: you.")
def recall(*, key: str, agent: str, config: Path | None) -> Result:
    """Show the value stored under KEY."""
    from fleet.operations.team.memory import Recall

    kept = connect(config=config).call(Recall(key, agent))
    pairs = [("agent", kept.agent), ("key", kept.key), ("type", kept.type)]
    pairs += [("tags", ", ".join(kept.tags))] if kept.tags else []
    pairs += [("stored", moment(kept.changed_at)), ("value", kept.value)]
    return Result("memory", kept, Pairs(pairs))


@memory.command(config=True)
@click.argument("words", nargs=-1, required=True)
@click.option("--agent", default="", help="Only what this member stored.")
@limit_option
def search(*, words: tuple[str, ...], agent: str, limit: int, config: Path | None) -> Result:
    """Search the team's memories for those that contain all WORDS."""
    from fleet.operations.team.memory import SearchMemory

    memories = connect(config=config).call(SearchMemory(" ".join(words), agent, limit=limit))
    return Result("memories", memories, _memories(memories))


@memory.command("list", config=True)
@click.argument("agent", required=False, default="")
@limit_option
def memory_list(*, agent: str, limit: int, config: Path | None) -> Result:
    """List the memories of AGENT, or of the whole team."""
    from fleet.operations.team.memory import ListMemory

    memories = connect(config=config).call(ListMemory(agent, limit=limit))
    return Result("memories", memories, _memories(memories))


def _memories(memories: Sequence[MemoryRow]) -> Table:
    rows = [(m.agent, m.key, m.type, one_line(m.value)) for m in memories]
    columns: Columns = ["agent", "key", "type", Column("value", flexible=True)]
    return Table(columns, rows, empty="No memories.")
