"""Agents in workspaces of their own: create, fanout, multi, list, prompt, attach, kill, explain."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from fleet.cli.terminal.completion import complete_agents, complete_tasks
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.render import Result, Text

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.cli.agents.create import Wanted
    from fleet.client import Client
    from fleet.operations.tasks.at_work import ListAgents

agent_option = click.option(
    "-a", "--agent", default="", shell_complete=complete_agents,
    help="The agent (role) or coder. Default: the setting `coder`.",
)  # fmt: skip
quick_option = click.option("--quick", is_flag=True, help="Skip the set-up commands.")
headless_option = click.option(
    "--headless", is_flag=True, help="Run without a terminal to attach to."
)
base_option = click.option("--base", default="", help="The commit to start from.")
wait_option = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    help="Seconds to wait until the agent has started.",
)


@command(config=True)
@click.argument("branch")
@click.option("-p", "--prompt", help="The agent's first prompt.")
@click.option("--prompt-file", metavar="FILE", help="Read the prompt from this file; `-` is stdin.")
@agent_option
@base_option
@quick_option
@headless_option
@wait_option
def create(branch: str, config: Path | None, wait: float, **given: object) -> Result:
    """Start an agent on BRANCH, in a worktree and a terminal of its own."""
    from fleet.cli.agents.create import add_agents, one_prompt, wanted

    prompt = one_prompt(given["prompt"], given["prompt_file"])
    return start(config, [wanted(branch, prompt, given)], wait, add_agents)


@command(config=True)
@click.argument("count", type=click.IntRange(1, 100))
@click.argument("prefix", required=False, default="")
@click.option("-p", "--prompt", required=True, help="The first prompt of each agent.")
@agent_option
@base_option
@quick_option
@headless_option
@wait_option
def fanout(
    count: int, prefix: str, prompt: str, config: Path | None, wait: float, **given: object
) -> Result:
    """Start COUNT agents with the same prompt, on branches PREFIX-A, PREFIX-B and so on."""
    from fleet.cli.agents.create import add_batch, fan, wanted

    branches = fan(count, prefix, prompt)
    return start(config, [wanted(b, prompt, given) for b in branches], wait, add_batch)


@command(config=True)
@click.argument("pairs", nargs=-1, metavar="BRANCH:PROMPT [BRANCH:PROMPT...]")
@click.option(
    "--file", "file", metavar="FILE", help="Read them from this file, one per line; `-` is stdin."
)
@agent_option
@base_option
@quick_option
@headless_option
@wait_option
def multi(
    pairs: tuple[str, ...], file: str | None, config: Path | None, wait: float, **given: object
) -> Result:
    """Start several agents, each with a branch and a prompt of its own."""
    from fleet.cli.agents.create import add_batch, paired, wanted

    agents = [wanted(branch, prompt, given) for branch, prompt in paired(pairs, file)]
    return start(config, agents, wait, add_batch)


def start(config: Path | None, agents: list[Wanted], wait: float, add: object) -> Result:
    from fleet.cli.agents.create import check, report
    from fleet.cli.terminal.connect import connect
    from fleet.cli.terminal.render import say
    from fleet.cli.terminal.set_up_line import Readying

    client = connect(config=config).this_machine("Starting an agent in a terminal of yours")
    check(client, agents)
    tasks = add(client, agents)  # type: ignore[operator]
    try:
        with Readying(client.home / "tasks", tasks):
            late = client.start(tasks, patience=wait)
    except KeyboardInterrupt:
        say(
            f"Interrupted: `fleet list --repair` continues with {' '.join(tasks)}, `fleet kill` ends them."
        )
        raise
    return report(client, tasks, late)


@command("list", config=True)
@click.option("-g", "--grouped", is_flag=True, help="Group the agents by batch.")
@click.option(
    "-a", "--all", "everything", is_flag=True, help="Also list agents that are done or cancelled."
)
@click.option("--everywhere", is_flag=True, help="List the agents of every project.")
@click.option("-w", "--watch", is_flag=True, help="Keep updating the list.")
@click.option("--repair", is_flag=True, help="Repair records that disagree with what runs.")
def list_(
    grouped: bool,  # noqa: FBT001  # click passes by name
    everything: bool,  # noqa: FBT001
    everywhere: bool,  # noqa: FBT001
    watch: bool,  # noqa: FBT001
    repair: bool,  # noqa: FBT001
    config: Path | None,
) -> Result:
    """List the agents at work here: their state, their usage and their cost."""
    from fleet.cli.agents.calls import reconcile
    from fleet.cli.agents.views import agent_table
    from fleet.cli.terminal.connect import connect

    client = connect(config=config)
    notes = reconcile(client.this_machine("Repairing")) if repair else ()
    request = agents_at_work(client, everything=everything, everywhere=everywhere)
    if watch and not wants_json():
        _watch(client, request, grouped=grouped)
    seen = client.observed(client.call(request))
    view = agent_table(seen, client.now(), grouped=grouped)
    return Result("agents", seen, view, notes=notes)


def agents_at_work(client: Client, *, everything: bool, everywhere: bool) -> ListAgents:
    """What `fleet list` and `fleet workers` ask for."""
    from fleet.operations.shared.names import MAX_ROWS
    from fleet.operations.tasks.at_work import ListAgents

    everywhere = everywhere or client.is_remote  # its directories are not ours
    project = "" if everywhere else client.project_or_cwd
    return ListAgents(project, everything, limit=MAX_ROWS)


def _watch(client: Client, request: object, *, grouped: bool) -> NoReturn:
    from fleet.cli.agents.views import agent_table
    from fleet.cli.terminal.live import Live

    with Live() as live:
        while True:
            seen = client.observed(client.call(request))  # type: ignore[arg-type]
            live.update(agent_table(seen, client.now(), grouped=grouped))
            client.wait(1.0)


@command(config=True)
@click.argument("name", metavar="AGENT", shell_complete=complete_tasks)
@click.argument("text", nargs=-1)
@click.option("--file", "file", metavar="FILE", help="Read the text from this file; `-` is stdin.")
@click.option(
    "--queue", is_flag=True, help="If the agent is busy, deliver the prompt after its turn."
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=15.0,
    help="Seconds to wait for the agent to start on it.",
)
def prompt(
    name: str,
    text: tuple[str, ...],
    file: str | None,
    queue: bool,  # noqa: FBT001  # click passes by name
    wait: float,
    config: Path | None,
) -> Result:
    """Send an agent its next prompt, and wait until it starts on it."""
    from fleet.cli.agents.calls import check_ease, check_heard, panel_notes
    from fleet.cli.tasks.messages import tell
    from fleet.cli.terminal.connect import connect

    client = connect(config=config)
    check_ease(client, name, queue=queue)
    message = tell(client, name, text, file, wait=wait)
    if not queue:
        check_heard(client, message)
    return message._replace(notes=panel_notes(client, message))


@command(json=False, config=True)
@click.argument("name", metavar="AGENT", shell_complete=complete_tasks)
def attach(name: str, config: Path | None) -> int:
    """Attach to an agent's terminal. Ctrl-Q detaches, also inside tmux; the agent keeps running."""
    from fleet.cli.terminal.connect import connect_here
    from fleet.domain.errors import Refused
    from fleet.operations.tasks.show import ShowTask

    client = connect_here(config=config)
    task = client.call(ShowTask(name))
    live = next((r for r in task.runs if not r.ending), None)
    if live is None or task.spec.mode != "terminal":
        how = "is not running" if live is None else "has no terminal"
        raise Refused(
            f"{task.task.id} {how}.",
            fix=f"`fleet logs {task.task.id}` shows its output, and where its last screen is saved.",
        )
    argv = client.attach_argv(live.id)
    sys.stdout.flush()
    os.execvp(argv[0], argv)  # noqa: S606  # argv is a list; there is no shell


@command(config=True)
@click.argument("pattern", required=False, shell_complete=complete_tasks)
@click.option("-b", "--batch", help="End all agents of this batch.")
@click.option("-f", "--force", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "-d", "--delete-branch", is_flag=True, help="Also delete the branch; unmerged commits are kept."
)
def kill(
    pattern: str | None,
    batch: str | None,
    force: bool,  # noqa: FBT001  # click passes by name
    delete_branch: bool,  # noqa: FBT001
    config: Path | None,
) -> Result:
    """End agents and remove their worktrees; unmerged and unpushed work is kept.

    PATTERN is an agent's name, or a pattern with `*`; `fleet kept` lists what was kept.
    """
    from fleet.cli.agents.calls import kill as end
    from fleet.cli.agents.kill import confirm, kill_summary, matches
    from fleet.cli.terminal.connect import connect
    from fleet.cli.terminal.render import say

    client = connect(config=config).this_machine("Removing a worktree")
    agents = matches(client, pattern, batch)
    confirm(agents, force=force)
    try:
        ended = end(client, agents, delete_branch=delete_branch)
    except KeyboardInterrupt:
        say(
            "Interrupted: `fleet kill` again ends the agents that are left; "
            "`fleet gc` finishes what is half removed."
        )
        raise
    failed = any(one.error for one in ended)
    data = [one._asdict() for one in ended]
    return Result("killed", data, Text(kill_summary(ended)), exit_status=1 if failed else 0)


@command(config=True)
@click.argument("name", metavar="AGENT", shell_complete=complete_tasks)
def explain(name: str, config: Path | None) -> Result:
    """Show what an agent is doing, and how Fleet knows."""
    from fleet.cli.agents.calls import sight
    from fleet.cli.agents.views import explanation
    from fleet.cli.terminal.connect import connect
    from fleet.operations.tasks.show import ShowTask

    client = connect(config=config)
    task = client.call(ShowTask(name))
    seen = sight(client, task)
    return Result("activity", seen, explanation(task, seen))
