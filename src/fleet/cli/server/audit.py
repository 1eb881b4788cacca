"""`fleet audit`: who asked the server for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.human import since_of
from fleet.cli.terminal.view import Cell, Column, ItemStream, Result, Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleet.client import Client
    from fleet.domain.audit import AuditRecord
    from fleet.operations.team.audit import ListAudit

LOOK_SECONDS = 1.0


@command(config=True)
@click.option("--actor", default="", help="Show only the requests of this name.")
@click.option("--team", default="", help="Show only the requests of this team.")
@click.option("--since", default="", help="Show only newer ones: 2h, 7d, or 2026-01-31T17:05Z.")
@click.option("--refused", is_flag=True, help="Show only refused requests.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Show at most this many.",
)
@click.option("-f", "--follow", is_flag=True, help="Show new ones as they come, until Ctrl-C.")
def audit(
    *, actor: str, team: str, since: str, refused: bool, limit: int, follow: bool,
    config: Path | None,
) -> Result:  # fmt: skip
    """List the requests to the server: who made them, from where, and which were refused.

    A coordinator sees the whole trail, a team-lead that of its team. With --follow and --json each
    record is a line of its own.
    """
    from fleet.operations.team.audit import ListAudit

    client = connect(config=config)
    request = ListAudit(actor, team, refused, since_of(since, client.now()), limit=limit)
    if follow:
        return Result("audit", _on(client, request), ItemStream(_line))
    records = client.call(request)
    columns = ["time", "outcome", "actor", "role", "team", "from"]
    return Result(
        "audit",
        records,
        Table([*columns, "operation", Column("target", flexible=True), "code", ""],
              [_row(record) for record in records], empty="No records."),
    )  # fmt: skip


def _on(client: Client, request: ListAudit) -> Iterator[AuditRecord]:
    """Yield the newest records, oldest first; then each new one."""
    from dataclasses import replace

    records = client.call(request)[::-1]
    while True:
        yield from records
        last = records[-1].id if records else request.after or _newest(client)
        request = replace(request, after=last, limit=200)
        client.wait(LOOK_SECONDS)
        records = client.call(request)


def _newest(client: Client) -> str:
    from fleet.operations.team.audit import ListAudit

    newest = client.call(ListAudit(limit=1))
    return newest[0].id if newest else "a-0"


def _row(record: AuditRecord) -> tuple[Any, ...]:
    from fleet.cli.team.lists import when

    outcome = Cell(record.outcome, "" if record.outcome == "allowed" else "red")
    times = f"x {record.count}" if record.count > 1 else ""
    return (
        when(record.at), outcome, record.actor or None, record.role, record.team, record.address,
        record.operation, record.target, record.code, times,
    )  # fmt: skip


def _line(record: AuditRecord) -> str:
    who = f"{record.actor or 'an unknown caller'} ({record.role or 'no token'})"
    what = " ".join(word for word in (record.operation, record.target, record.code) if word)
    times = f" x {record.count}" if record.count > 1 else ""
    return f"{record.outcome:8} {who} from {record.address}: {what}{times}"
