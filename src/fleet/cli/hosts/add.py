"""`fleet host add`: make another machine take tasks from this queue."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.render import say
from fleet.cli.terminal.view import Column, Result, Table, Text
from fleet.domain.errors import BadInput, Refused

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.cli.terminal.view import Value
    from fleet.client import Client


@command(config=True)
@click.argument("box", metavar="BOX", default="")
@click.option("--tailnet", is_flag=True, help="List the machines of your tailnet instead.")
@click.option(
    "--dry-run", is_flag=True, help="Check BOX and show what would be done; change nothing."
)
@click.option(
    "--store",
    default="",
    metavar="ADDRESS",
    help="HOST[:PORT] of the store as BOX reaches it, or a URL with a login that BOX is to use.",
)
@click.option(
    "--server",
    default="",
    metavar="URL",
    help="The server as BOX reaches it, so that runs there can be read elsewhere.",
)
@click.option("--home", default="", metavar="DIR", help="The home of Fleet there, if not ~/.fleet.")
@click.option("--label", "labels", multiple=True, help="What BOX has that tasks may need.")
def add(
    *,
    box: str,
    tailnet: bool,
    dry_run: bool,
    store: str,
    server: str,
    home: str,
    labels: tuple[str, ...],
    config: Path | None,
) -> Result:
    """Make another machine take tasks from this queue. BOX is a name that ssh knows.

    It installs this very release there, without a package index if BOX has the same Python and
    system; gives BOX a database login of its own; starts its supervisor as a service; waits for it,
    and runs a task there. Every step can be repeated. `fleet host forget` undoes it.
    """
    from fleet.app.hosts.add import Addition, ssh_to
    from fleet.domain.hosts.labels import check_labels

    if tailnet:
        return _peers()
    if not box or box.startswith("-"):
        raise BadInput("Name the machine, as ssh knows it.", fix="fleet host add BOX")
    check_labels(labels)
    client = connect_here(config=config)
    steps = []
    with ssh_to(box, os.environ) as shell:
        addition = Addition(client.app, shell, store=store, home=home, labels=labels, server=server)
        for step in addition.steps(dry=dry_run):
            steps.append(step._asdict())
            if not wants_json():
                say(f"{step.name:9} {step.words}", "" if step.done else "dim")
    data = {"box": box, "host": addition.host, "steps": steps}
    words = "Nothing was changed." if dry_run else f"{addition.host} takes tasks now."
    return Result("host_added", data, Text(words))


def put_back(client: Client, name: str) -> None:
    """Undo what `fleet host add` did from this home, if it did."""
    from fleet.app.hosts.add import additions, ssh_to, undo_addition
    from fleet.client import LocalClient
    from fleet.operations.compute.hosts import ShowHost

    if not isinstance(client, LocalClient):
        return
    detail = client.call(ShowHost(name))
    done = additions(client.home).get(detail.host.id)
    if done is None:
        return
    if detail.host.runs:
        raise Refused(
            f"{detail.host.id} still runs agents: {detail.host.runs}.",
            fix=f"fleet host drain {detail.host.id}, and repeat this when they have ended.",
            code="host_has_runs",
        )
    with ssh_to(done["box"], os.environ) as shell:
        undo_addition(client.app, shell, done)
    say(f"Put {done['box']} back as it was.", "dim")


def _peers() -> Result:
    from fleet.app.hosts.add import tailnet

    peers = tailnet(os.environ)
    rows: list[list[Value]] = [
        [peer["name"], peer["address"], peer["system"], "yes" if peer["online"] else "no"]
        for peer in peers
    ]
    columns = (Column("box", flexible=True, least=10), "address", "system", "online")
    return Result("tailnet", peers, Table(columns, rows), notes=("Add one: fleet host add BOX",))
