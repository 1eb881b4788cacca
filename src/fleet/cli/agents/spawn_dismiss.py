"""Agents by the names that coordination servers have for them: spawn, dismiss, workers."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from fleet.cli.agents.agents import (
    agents_at_work,
    attach_option,
    base_option,
    quick_option,
    start,
    wait_option,
)
from fleet.cli.choice_options import choice_options
from fleet.cli.terminal.completion import complete_agents_at_work
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.render import Result, Text
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleet.client import Client

ONLY_HERE = ("base", "quick", "attach", "permissions")
NOT_YET = frozenset({"ready", "waiting", "postponed", "starting"})


@command(config=True)
@click.argument("handle")
@click.argument("prompt", nargs=-1)
@click.option(
    "--spawn-mode",
    type=click.Choice(["tmux", "process", "native"]),
    default="tmux",
    help="tmux: with a terminal to attach to; process or native: without one.",
)
@choice_options
@base_option
@quick_option
@attach_option
@wait_option
def spawn(
    *,
    handle: str,
    prompt: tuple[str, ...],
    spawn_mode: str,
    attach: bool,
    config: Path | None,
    wait: float,
    **given: object,
) -> Result:
    """Start an agent on the branch HANDLE, as `fleet create` does."""
    from fleet.app.server_address import named_url
    from fleet.cli.agents.create import add_agents, wanted

    words, terminal = " ".join(prompt), spawn_mode == "tmux"
    if named_url(os.environ):
        known = {**given, "terminal": terminal, "attach": attach}
        return _spawn_there(config, handle, words, wait, known)
    given["headless"] = not terminal
    agents = [wanted(handle, words, given, attach=attach)]
    return start(config, agents, wait, add_agents, attach=attach)


def _spawn_there(
    config: Path | None, handle: str, prompt: str, wait: float, given: Mapping[str, object]
) -> Result:
    """Have the server start the agent; wait until it runs, or until our patience ends."""
    from fleet.client.remote import local_only
    from fleet.operations.tasks.show import ShowTask
    from fleet.operations.tasks.spawn import SpawnAgent

    if options := [f"--{name}" for name in ONLY_HERE if given[name]]:
        raise local_only(" and ".join(options))
    client, until = connect(config=config), time.monotonic() + wait
    agent, terminal = str(given["agent"] or given["coder"]), bool(given["terminal"])
    model = str(given["model"])
    row = client.call(SpawnAgent(handle, prompt, agent=agent, model=model, terminal=terminal))
    while row.status in NOT_YET and time.monotonic() < until:
        client.wait(0.2)
        row = client.call(ShowTask(row.id)).task
    why = f"; `fleet show {row.id}` says why" if row.status in NOT_YET else ""
    return Result("tasks", [row], Text(f"{handle} ({row.id}) is {row.status} on the server{why}."))


@command(config=True)
@click.argument("handle", shell_complete=complete_agents_at_work)
def dismiss(handle: str, config: Path | None) -> Result:
    """End the agent HANDLE and remove its worktree, as `fleet kill` does; its work is kept."""
    from fleet.cli.agents.calls import kill
    from fleet.cli.agents.kill import kill_summary, matches

    remote = connect(config=config)
    if remote.is_remote:
        return _dismiss_there(remote, handle)
    client = remote.this_machine("Removing a worktree")
    agents = matches(client, handle, None)
    if len(agents) > 1:
        names = ", ".join(agent.task for agent in agents)
        raise BadInput(f"'{handle}' names {len(agents)} agents: {names}.", fix="Name one of them.")
    ended = kill(client, agents, delete_branch=False)
    return Result("killed", [one._asdict() for one in ended], Text(kill_summary(ended)))


def _dismiss_there(client: Client, handle: str) -> Result:
    """Have the server end the agent; its worktree stays, with everything in it."""
    from fleet.operations.tasks.change import CancelTask
    from fleet.operations.tasks.show import ShowTask

    ended = client.call(CancelTask(handle, "Dismissed."))
    row = client.call(ShowTask(ended.id)).task
    return Result("tasks", [row], Text(f"{handle} ({row.id}) is {row.status} on the server."))


@command(config=True)
@click.option("-a", "--all", "everything", is_flag=True, help="Also list agents that have ended.")
@click.option("--everywhere", is_flag=True, help="List the agents of every project.")
def workers(
    everything: bool,  # noqa: FBT001  # click passes by name
    everywhere: bool,  # noqa: FBT001
    config: Path | None,
) -> Result:
    """List the agents at work here, as `fleet list` does."""
    from fleet.cli.agents.views import agent_table

    client = connect(config=config)
    request = agents_at_work(client, everything=everything, everywhere=everywhere)
    seen = client.observed(client.call(request))
    view = agent_table(seen, client.now(), grouped=False, everywhere=not request.project)
    return Result("agents", seen, view)
