"""`fleet host invite`, `join` and `leave`: a machine joins the queue without ssh."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.connect import connect, connect_here
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.render import say
from fleet.cli.terminal.view import Result, Text

if TYPE_CHECKING:
    from pathlib import Path

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@command(config=True)
@click.option(
    "--store", default="", metavar="HOST[:PORT]", help="PostgreSQL as the machine reaches it."
)
@click.option("--host", default="", metavar="ID", help="Only this machine, even if it is known.")
@click.option(
    "--hours",
    type=click.FloatRange(0.01, 24 * 30),
    default=24.0,
    show_default=True,
    help="Hours until the invitation expires.",
)
def invite(*, store: str, host: str, hours: float, config: Path | None) -> Result:
    """Create a secret with which one machine joins this queue, and print what to type there."""
    from fleet.operations.compute.joining import InviteHost

    client = connect(config=config)
    made = client.call(InviteHost(store, host, max(1, int(hours * 3600))))
    url = client.server_url
    line = f"fleet host join {url} --token {made.secret}"
    notes = [f"One machine can join with it, within {hours:g} h."]
    if any(name in url for name in LOOPBACK):
        notes.append("Other machines do not reach the server by that address: set server.url.")
    data = {"id": made.id, "until": made.until, "secret": made.secret, "line": line}
    return Result("host_invited", data, Text(line), notes=tuple(notes))


@command(config=True)
@click.argument("url", metavar="URL")
@click.option("--token", default="", metavar="ENROL", help="The secret of `fleet host invite`.")
@click.option("--label", "labels", multiple=True, help="What this machine has that tasks may need.")
@click.option("--no-start", is_flag=True, help="Do not start the supervisor: print how.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check this machine and show what would be done; change nothing.",
)
def join(
    *,
    url: str,
    token: str,
    labels: tuple[str, ...],
    no_start: bool,
    dry_run: bool,
    config: Path | None,
) -> Result:
    """Make this machine take tasks from the queue of the server at URL.

    It checks what is installed here, gets a login to the store and a token of its own for the server,
    starts the supervisor as a service, waits for it, and runs a task here. Every step can be
    repeated. `fleet host leave` undoes it.
    """
    from fleet.app.hosts.join import Joining
    from fleet.domain.hosts.labels import check_labels

    check_labels(labels)
    joining = Joining(
        os.environ, url, token, lambda: connect_here(config=config).app,
        labels=labels, start=not no_start,
    )  # fmt: skip
    steps = []
    for step in joining.steps(dry=dry_run):
        steps.append(step._asdict())
        if not wants_json():
            say(f"{step.name:9} {step.words}", "" if step.done else "dim")
    data = {"host": joining.host, "steps": steps, "start": joining.by_hand}
    words = f"{joining.host} takes tasks now."
    if joining.by_hand:
        words = f"{joining.host} takes tasks once you type: {joining.by_hand}"
    return Result("host_joined", data, Text("Nothing was changed." if dry_run else words))


@command()
def leave() -> Result:
    """Undo what `fleet host join` did here. `fleet host forget` on another machine revokes the rest."""
    from fleet.app.hosts.join import leave as leave_queue

    done = leave_queue(os.environ)
    words = f"This machine takes no more tasks. Elsewhere: fleet host forget {done['host']}"
    return Result("host_left", done, Text(words))
