"""`fleet mail`: what members of a team write to each other."""

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
from fleet.cli.terminal.human import moment
from fleet.cli.terminal.view import Column, Pairs, Result, Table, Text

if TYPE_CHECKING:
    from pathlib import Path


@listing_group
def mail() -> None:
    """List and read your mail, and send mail within the team."""


@mail.command("send", config=True)
@click.argument("to")
@click.argument("text", nargs=-1, required=True)
@click.option("--subject", default="", help="The subject of the mail.")
@team_option
def mail_send(
    *, to: str, text: tuple[str, ...], subject: str, team: str, config: Path | None
) -> Result:
    """Send TEXT to a member, who reads it later."""
    from fleet.operations.messages.mail import SendMail

    sent = connect(config=config).call(SendMail(to, " ".join(text), subject, team=team))
    return Result("mail", sent, Text(f"Sent {sent.id} to {sent.to}."))


@mail.command("broadcast", config=True)
@click.argument("text", nargs=-1, required=True)
@click.option("--subject", default="", help="The subject of the mail.")
@team_option
def mail_broadcast(
    *, text: tuple[str, ...], subject: str, team: str, config: Path | None
) -> Result:
    """Send TEXT to every member of the team."""
    from fleet.operations.messages.mail import Broadcast

    sent = connect(config=config).call(Broadcast(" ".join(text), subject, team=team))
    rows = [(m.id, m.to) for m in sent]
    return Result("mails", sent, Table(["mail", "to"], rows))


@mail.command("list", config=True)
@click.argument("handle", required=False, default="")
@click.option("--unread", is_flag=True, help="Only unread mail.")
@click.option("--mark-read", is_flag=True, help="Mark your own mail as read.")
@team_option
@limit_option
def mail_list(
    *, handle: str, unread: bool, mark_read: bool, team: str, limit: int, config: Path | None
) -> Result:
    """List your mail; a team-lead can also list that of HANDLE."""
    from fleet.operations.messages.mail import ListMail, TakeMail

    client = connect(config=config)
    if mark_read and not handle:
        mails = client.call(TakeMail(unread, team, limit))
    else:
        mails = client.call(ListMail(handle, unread, team, limit=limit))
    rows = [
        (m.id, when(m.at), m.sender, "" if m.read_at else "new", one_line(m.subject or m.text))
        for m in mails
    ]
    columns: Columns = ["mail", "when", "from", "", Column("subject", flexible=True)]
    return Result("mails", mails, Table(columns, rows, empty="No mail."))


@mail.command("read", config=True)
@click.argument("which", metavar="MAIL")
def mail_read(*, which: str, config: Path | None) -> Result:
    """Show a MAIL and mark it as read."""
    from fleet.operations.messages.mail import ReadMail

    read = connect(config=config).call(ReadMail(which))
    pairs = [("mail", read.id), ("from", read.sender), ("to", read.to), ("sent", moment(read.at))]
    return Result("mail", read, Pairs([*pairs, ("subject", read.subject), ("text", read.text)]))
