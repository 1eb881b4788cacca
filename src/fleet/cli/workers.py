"""Agents by the names that coordination servers have for them: spawn, dismiss, workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.agents import agent_option, base_option, quick_option, start, wait_option
from fleet.cli.completion import complete_tasks
from fleet.cli.frame import command
from fleet.cli.render import Result, Text

if TYPE_CHECKING:
    from pathlib import Path


@command(config=True)
@click.argument("handle")
@click.argument("prompt", nargs=-1)
@click.option(
    "--spawn-mode",
    type=click.Choice(["tmux", "process", "native"]),
    default="tmux",
    help="tmux: with a terminal to attach to; process or native: without one.",
)
@agent_option
@base_option
@quick_option
@wait_option
def spawn(
    handle: str,
    prompt: tuple[str, ...],
    spawn_mode: str,
    config: Path | None,
    wait: float,
    **given: object,
) -> Result:
    """Start an agent on the branch HANDLE, as `fleet create` does."""
    from fleet.cli.new_agent import add_agents, wanted

    given["headless"] = spawn_mode != "tmux"
    return start(config, [wanted(handle, " ".join(prompt), given)], wait, add_agents)


@command(config=True)
@click.argument("handle", shell_complete=complete_tasks)
def dismiss(handle: str, config: Path | None) -> Result:
    """End the agent HANDLE and remove its worktree, as `fleet kill` does; its work is kept."""
    from fleet.cli.agent_calls import kill
    from fleet.cli.connect import connect
    from fleet.cli.killing import matches, shown
    from fleet.domain.errors import BadInput

    client = connect(config=config)
    found = matches(client, handle, None)
    if len(found) > 1:
        names = ", ".join(agent.task for agent in found)
        raise BadInput(f"'{handle}' is {len(found)} agents: {names}.", fix="Name one of them.")
    ended = [kill(client, found[0], delete_branch=False)]
    return Result("killed", [one._asdict() for one in ended], Text(shown(ended)))


@command(config=True)
@click.option("-a", "--all", "everything", is_flag=True, help="Those that have ended, too.")
@click.option("--everywhere", is_flag=True, help="Of every project.")
def workers(
    everything: bool,  # noqa: FBT001  # click passes by name
    everywhere: bool,  # noqa: FBT001
    config: Path | None,
) -> Result:
    """List the agents at work here, as `fleet list` does."""
    from fleet.cli.agent_views import agent_table
    from fleet.cli.connect import connect
    from fleet.operations.agents import ListAgents

    client = connect(config=config)
    project = "" if everywhere else str(client.app.loaded.project or client.app.cwd.resolve())
    seen = client.observed(client.call(ListAgents(project, everything)))
    return Result("agents", seen, agent_table(seen, client.app.store.now(), grouped=False))
