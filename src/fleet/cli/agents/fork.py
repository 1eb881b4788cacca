"""`fleet fork`: the same conversation, continued on a branch of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from fleet.cli.agents.agents import wait_option
from fleet.cli.terminal.completion import complete_agents_at_work
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.cli.terminal.render import Result


@command(config=True)
@click.argument("name", metavar="AGENT", shell_complete=complete_agents_at_work)
@click.argument("branch")
@click.option("-p", "--prompt", default="", help="The first prompt of the new agent.")
@wait_option
def fork(name: str, branch: str, prompt: str, wait: float, config: Path | None) -> Result:
    """Continue the conversation of AGENT with a second agent, on BRANCH.

    AGENT goes on as it is. The new worktree starts from its commit; changes that it had not committed
    are one more commit on BRANCH.
    """
    from fleet.cli.agents.create import report
    from fleet.operations.tasks.fork import ForkAgent
    from fleet.operations.tasks.show import ShowTask

    client = connect(config=config).this_machine("Starting an agent in a terminal of yours")
    source = client.call(ShowTask(name))
    client.check_start(replace(source.spec, branch=branch, base=""), source.task.project)
    forked = client.call(ForkAgent(name, branch, prompt))
    late = client.start([forked.task.id], patience=wait)
    result = report(client, [forked.task.id], late)
    words = f"It continues the conversation of {forked.source} from {forked.base[:12]}"
    more = ", with a commit of its uncommitted changes" if forked.uncommitted else ""
    return result._replace(notes=(*result.notes, f"{words}{more}."))
