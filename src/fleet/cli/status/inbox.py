"""`fleet inbox`: what needs you, and putting items away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import group
from fleet.cli.terminal.human import UNITS, counted, moment
from fleet.cli.terminal.view import Cell, Column, Result, Table, Text
from fleet.domain.errors import BadInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.client import Client
    from fleet.domain.inbox import InboxItem

SECOND = 1_000_000
NOTHING = "Nothing needs you."
items_argument = click.argument("items", nargs=-1, required=True, metavar="ITEM...")


@group(invoke_without_command=True, json=True, config=True)
@click.option("--everywhere", is_flag=True, help="The items of every project.")
@click.option("--finished", is_flag=True, help="Also finished work that you have not seen.")
@click.option("--snoozed", is_flag=True, help="Also what you have put away.")
def inbox(*, everywhere: bool, finished: bool, snoozed: bool, config: Path | None) -> Result | None:
    """List what needs you, with the command for each, and put items away.

    An item goes by itself when its cause goes. What you put away stays listed to others.
    """
    if click.get_current_context().invoked_subcommand:
        return None
    client = connect(config=config)
    # the directories of a server are not ours
    project = "" if everywhere or client.is_remote else client.project_or_cwd
    rows = _listed(client, project, finished=finished, snoozed=snoozed)
    return Result("inbox", rows, _table(rows))


@inbox.command(config=True)
@items_argument
def seen(items: tuple[str, ...], config: Path | None) -> Result:
    """Do not list ITEM to you again, unless it happens again.

    ITEM is what `fleet inbox` lists, or a task: then all of its items.
    """
    from fleet.operations.inbox import SeeItems

    client = connect(config=config)
    marks = client.call(SeeItems(tuple(_named(client, items))))
    return Result("marks", marks, Text(f"{counted(len(marks), 'item')} put away."))


@inbox.command(config=True)
@items_argument
@click.option("--for", "time", default="1h", help="30m, 2h or 7d; 0 lists it again now.")
def snooze(items: tuple[str, ...], time: str, config: Path | None) -> Result:
    """Do not list ITEM to you for some time.

    ITEM is what `fleet inbox` lists, or a task: then all of its items.
    """
    from fleet.operations.inbox import SnoozeItem

    client = connect(config=config)
    seconds = _seconds(time)
    marks = [client.call(SnoozeItem(item, seconds)) for item in _named(client, items)]
    what = counted(len(marks), "item")
    words = f"{what} put away until {moment(marks[0].until)}." if seconds else f"{what} listed."
    return Result("marks", marks, Text(words))


def _listed(client: Client, project: str, *, finished: bool, snoozed: bool) -> Sequence[InboxItem]:
    from fleet.domain.inbox import Need
    from fleet.operations.inbox import ListInbox

    kinds = tuple(Need) if finished else ()
    return client.call(ListInbox(project, kinds, limit=1000, snoozed=snoozed))


def _named(client: Client, names: Sequence[str]) -> list[str]:
    """The items of the tasks among these names, and the items themselves."""
    tasks = {name for name in names if ":" not in name}
    every = _listed(client, "", finished=True, snoozed=True) if tasks else ()
    if absent := tasks - {item.task for item in every}:
        raise NotFound(f"Nothing of {min(absent)} is in the inbox.", fix="fleet inbox")
    ids = [item.id for item in every if item.task in tasks]
    return list(dict.fromkeys([*ids, *(name for name in names if ":" in name)]))


def _seconds(text: str) -> int:
    number, unit = (text[:-1], text[-1:]) if not text.isdecimal() else (text, "s")
    if not number.isdecimal() or unit not in UNITS or len(text) > 9:
        raise BadInput(f"--for: '{text[:40]}' is not a time.", fix="As in 30m, 2h or 7d.")
    return int(number) * UNITS[unit] // SECOND


def _table(items: Sequence[InboxItem]) -> Table:
    from fleet.cli.status.views import STYLES, WORDS, about_item

    columns = (
        Column("item", flexible=True, least=16, wants=24),
        Column("task", spare=2),
        "what",
        Column("about", flexible=True, least=16, wants=24),
        Column("next", spare=1),
    )
    rows = [
        (
            item.id,
            item.task or None,
            Cell(WORDS.get(item.kind, item.kind), STYLES[item.severity]),
            about_item(item),
            item.actions[0].command,
        )
        for item in items
    ]
    return Table(columns, rows, empty=NOTHING)
