"""`fleet chat`: members of a team talk to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.lists import (
    Columns,
    limit_option,
    one_line,
    team_option,
    when,
)
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import listing_group
from fleet.cli.terminal.view import Column, Result, Table, Text

if TYPE_CHECKING:
    from pathlib import Path


@listing_group
def chat() -> None:
    """List your chats, and talk to members of the team; only they can read it."""


@chat.command("open", config=True)
@click.argument("members", nargs=-1)
@team_option
def open_(*, members: tuple[str, ...], team: str, config: Path | None) -> Result:
    """Open the chat with MEMBERS; without members, the team's chat."""
    from fleet.operations.messages.chats import OpenChat

    opened = connect(config=config).call(OpenChat(members, team))
    who = ", ".join(opened.participants) or "everyone in the team"
    return Result("chat", opened, Text(f"Opened {opened.id} with {who}."))


@chat.command("list", config=True)
@team_option
@limit_option
def list_(*, team: str, limit: int, config: Path | None) -> Result:
    """List the chats that you are in."""
    from fleet.operations.messages.chats import ListChats

    chats = connect(config=config).call(ListChats(team, limit=limit))
    rows = [
        (c.id, ", ".join(c.participants) or "everyone", c.unread, one_line(c.last.text if c.last else ""))
        for c in chats
    ]  # fmt: skip
    columns: Columns = ["chat", Column("with", flexible=True), "unread"]
    table = Table([*columns, Column("last", flexible=True)], rows, empty="No chats.")
    return Result("chats", chats, table)


@chat.command(config=True)
@click.argument("which", metavar="CHAT")
@click.argument("text", nargs=-1, required=True)
@team_option
def say(*, which: str, text: tuple[str, ...], team: str, config: Path | None) -> Result:
    """Send TEXT to a CHAT."""
    from fleet.operations.messages.chats import Say

    sent = connect(config=config).call(Say(which, " ".join(text), team=team))
    return Result("saying", sent, Text(f"Sent {sent.id} to {sent.chat}."))


@chat.command(config=True)
@click.argument("which", metavar="CHAT")
@click.option("--peek", is_flag=True, help="Do not mark the chat as read.")
@team_option
@limit_option
def read(*, which: str, peek: bool, team: str, limit: int, config: Path | None) -> Result:
    """Show the messages of a CHAT, newest last, and mark them as read."""
    from fleet.operations.messages.chats import MarkChat, ReadChat

    client = connect(config=config)
    lines = client.call(ReadChat(which, limit=limit, team=team))
    if not peek:
        client.call(MarkChat(which, team=team))
    rows = [(when(s.at), s.author, one_line(s.text)) for s in reversed(lines)]
    columns: Columns = ["when", "from", Column("text", flexible=True)]
    return Result("sayings", lines, Table(columns, rows, empty="No messages yet."))
