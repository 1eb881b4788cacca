"""`fleet host`: the machines that run agents."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import listing_group
from fleet.cli.terminal.view import Cell, Column, Pairs, Result, Stack, Table, Text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.cli.terminal.view import Style, Value, View
    from fleet.operations.compute.hosts import HostDetail, HostRow

STYLES: dict[str, Style] = {
    "awake": "green",
    "draining": "yellow",
    "silent": "red",
    "lost": "red",
    "stopped": "dim",
}
CHECKS: dict[str, Style] = {"ok": "green", "warning": "yellow", "bad": "red"}
EMPTY = "No supervisor has run on any machine yet. Start one: fleet run"


@listing_group
def host() -> None:
    """List, drain and remove the machines that run agents.

    A machine is here once a supervisor has run on it. Machines that share a PostgreSQL store take
    tasks from the same queue.
    """


@host.command("list", config=True)
def list_(config: Path | None) -> Result:
    """List the machines: whether each is awake, its runs, its labels and what it lacks."""
    from fleet.operations.compute.hosts import ListHosts

    rows = connect(config=config).call(ListHosts())
    view: View = host_table(rows, time.time_ns() // 1000) if rows else Text(EMPTY)
    return Result("hosts", rows, view)


@host.command(config=True)
@click.argument("name", metavar="HOST")
def show(name: str, config: Path | None) -> Result:
    """Show a machine, its runs, and when other machines may take those of a silent one."""
    from fleet.operations.compute.hosts import ShowHost

    detail = connect(config=config).call(ShowHost(name))
    return Result("host", detail, _detail(detail))


@host.command(config=True)
@click.argument("name", metavar="HOST")
def doctor(name: str, config: Path | None) -> Result:
    """Check what keeps a machine from taking tasks, and show how to fix it.

    It goes by what the machine's supervisor last wrote; `fleet doctor` typed there checks more.
    Exit status 1 if a check fails; a warning alone does not change it.
    """
    from fleet.operations.compute.hosts import ExamineHost

    checks = connect(config=config).call(ExamineHost(name))
    bad = any(each.state == "bad" for each in checks)
    rows: list[list[Value]] = [
        [each.check, Cell(each.state, CHECKS[each.state]), each.message, each.fix or None]
        for each in checks
    ]
    columns = ("check", "state", Column("what", flexible=True, least=24), "next")
    return Result("host_doctor", checks, Table(columns, rows), exit_status=int(bad))


@host.command(config=True)
@click.argument("name", metavar="HOST")
def drain(name: str, config: Path | None) -> Result:
    """Start no new runs on a machine, before an upgrade for example. Its runs go on."""
    from fleet.operations.compute.hosts import DrainHost

    row = connect(config=config).call(DrainHost(name))
    runs = f"{row.runs} {'goes' if row.runs == 1 else 'go'} on there" if row.runs else "It has none"
    words = f"{row.id} starts no new runs. {runs}. Undo it: fleet host resume {row.id}"
    return Result("host", row, Text(words))


@host.command(config=True)
@click.argument("name", metavar="HOST")
def resume(name: str, config: Path | None) -> Result:
    """Let a drained machine start runs again."""
    from fleet.operations.compute.hosts import ResumeHost

    row = connect(config=config).call(ResumeHost(name))
    return Result("host", row, Text(f"{row.id} starts runs again."))


@host.command(config=True)
@click.argument("name", metavar="HOST")
@click.option("--off", is_flag=True, help="The machine is off: do not wait for its lease.")
def forget(*, name: str, off: bool, config: Path | None) -> Result:
    """Remove a machine that is not coming back. Other machines take what it left unfinished.

    One that `fleet host add` added from here is also put back as it was: its supervisor is stopped,
    and what was installed and set there is removed.
    """
    from fleet.cli.hosts.add import put_back
    from fleet.cli.terminal.human import counted
    from fleet.operations.compute.hosts import ForgetHost

    client = connect(config=config)
    if not off:
        put_back(client, name)
    row = client.call(ForgetHost(name, off))
    left = f" Other machines take what it left: {counted(row.runs, 'run')}." if row.runs else ""
    return Result("host", row, Text(f"Removed {row.id}.{left}"))


def host_table(rows: Sequence[HostRow], now: int) -> Table:
    columns = (
        "host",
        "state",
        "seen",
        "runs",
        "disk",
        "labels",
        Column("lacks", flexible=True, least=16),
    )
    return Table(columns, [_cells(row, now) for row in rows])


def _cells(row: HostRow, now: int) -> list[Value]:
    from fleet.cli.terminal.human import ago
    from fleet.domain.hosts.disk import bytes_in_words

    room = f"{row.runs} of {row.room}" if row.room else str(row.runs)
    seen = ago(row.seen_at, now) if row.seen_at else None
    labels = ", ".join(row.labels) or None
    disk = bytes_in_words(row.disk.total) if row.disk else None
    state = Cell(row.state, STYLES[row.state])
    return [row.id, state, seen, room, disk, labels, _lacks(row) or None]


def _lacks(row: HostRow) -> str:
    nodes = [f"{each.what}: {each.why}" for each in row.down]
    programs = [each.why or each.what for each in row.missing]
    projects = [f"{each.what}: {each.why}" for each in row.without]
    return "; ".join([*programs, *nodes, *projects])


def _disk(row: HostRow, now: int) -> str | None:
    from fleet.cli.terminal.human import ago
    from fleet.domain.hosts.disk import bytes_in_words

    if (disk := row.disk) is None:
        return None
    parts = (
        ("worktrees", disk.worktrees),
        ("pool", disk.pool),
        ("kept", disk.kept),
        ("runs", disk.runs),
    )
    each = ", ".join(f"{name} {bytes_in_words(count)}" for name, count in parts)
    free = f"{bytes_in_words(disk.free)} free"
    return f"{bytes_in_words(disk.total)}: {each}; {free} ({ago(disk.at, now)})"


def _detail(detail: HostDetail) -> View:
    from fleet.cli.terminal.human import ago, moment

    row, now = detail.host, time.time_ns() // 1000
    room = f"{row.runs} of {row.room}" if row.room else str(row.runs)
    seen = ago(row.seen_at, now) if row.seen_at else None
    pairs: list[tuple[str, Value]] = [
        ("host", row.id),
        ("state", Cell(row.state, STYLES[row.state])),
        ("seen", seen),
        ("runs", room),
        ("labels", ", ".join(row.labels) or None),
        ("fleet", row.release or None),
        ("disk", _disk(row, now)),
        ("lacks", _lacks(row) or None),
    ]
    runs: list[list[Value]] = [
        [each.run, each.title, ago(each.since, now), each.elsewhere_from and moment(each.elsewhere_from)]
        for each in detail.at_work
    ]  # fmt: skip
    columns = ("run", Column("title", flexible=True, least=16), "since", "others may take it")
    return Stack([("", Pairs(pairs)), ("Runs:", Table(columns, runs))])


def add_command() -> None:
    """The commands that change another machine are in a module of their own."""
    from fleet.cli.hosts.add import add
    from fleet.cli.hosts.join import invite, join, leave

    for each in (add, invite, join, leave):
        host.add_command(each)


add_command()
