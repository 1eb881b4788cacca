"""Agents in workspaces of their own: create, fanout, multi, list, prompt, attach, kill, explain."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from fleet.cli.choice_options import choice_options
from fleet.cli.terminal.completion import complete_agents_at_work
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.render import Result, Text, say
from fleet.cli.terminal.view import Column, Table
from fleet.domain.errors import BadInput, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleet.cli.agents.create import WantedAgent
    from fleet.client import Client
    from fleet.operations.tasks.at_work import ListAgents

MOST_ISSUES = 50  # that one command takes
quick_option = click.option("--quick", is_flag=True, help="Skip the set-up commands.")
headless_option = click.option(
    "--headless", is_flag=True, help="Run without a terminal to attach to."
)
attach_option = click.option(
    "--attach", is_flag=True, help="Attach to its terminal as soon as it has started."
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
@choice_options
@base_option
@quick_option
@headless_option
@attach_option
@wait_option
def create(
    *, branch: str, attach: bool, config: Path | None, wait: float, **given: object
) -> Result:
    """Start an agent on BRANCH, in a worktree and a terminal of its own.

    A branch that exists is refused: --base BRANCH starts a new one from it.
    """
    from fleet.cli.agents.create import add_agents, one_prompt, wanted

    prompt = one_prompt(given["prompt"], given["prompt_file"])
    agents = [wanted(branch, prompt, given, attach=attach)]
    return start(config, agents, wait, add_agents, attach=attach)


@command(config=True)
@click.argument("count", type=click.IntRange(1, 100))
@click.argument("prefix", required=False, default="")
@click.option("-p", "--prompt", required=True, help="The first prompt of each agent.")
@choice_options
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
@click.option(
    "--issues",
    "query",
    metavar="QUERY",
    help="Queue a task for each open issue that the forge finds; `linear:…` and `jira:…` ask there.",
)
@choice_options
@base_option
@quick_option
@headless_option
@wait_option
def multi(
    pairs: tuple[str, ...],
    file: str | None,
    query: str | None,
    config: Path | None,
    wait: float,
    **given: object,
) -> Result:
    """Start several agents, each with a branch and a prompt of its own.

    With --issues, each issue that has no task yet gets one, and the queue starts them.
    """
    from fleet.cli.agents.create import add_batch, paired, wanted

    if query is not None:
        if pairs or file:
            raise BadInput(
                "--issues cannot be used with BRANCH:PROMPT or a file.", fix="Give one of them."
            )
        if not query.strip():
            raise BadInput("The query is empty.", fix="For example: fleet multi --issues label:bug")
        return _queue_issues(config, query, given)
    agents = [wanted(branch, prompt, given) for branch, prompt in paired(pairs, file)]
    return start(config, agents, wait, add_batch)


def _queue_issues(config: Path | None, query: str, given: Mapping[str, object]) -> Result:
    from fleet.cli.agents.create import project_of
    from fleet.cli.tasks.add import directory
    from fleet.domain.task import Limits, Spec
    from fleet.operations.forges.tickets import AddTicket, FindTickets

    client = connect(config=config).this_machine("Looking for issues of this repository")
    project = project_of(client)
    spec = Spec(
        agent=str(given["agent"]),
        coder=str(given["coder"]),
        model=str(given["model"]),
        base=str(given["base"]),
        cwd=str(directory(None)),
        limits=Limits(permissions=str(given["permissions"])),
    )
    tickets = client.call(FindTickets(query, project, MOST_ISSUES))
    rows = [client.call(AddTicket(t.url, "", project, spec)) for t in tickets if not t.task]
    columns: list[Column | str] = ["task", "status", Column("title", flexible=True)]
    cells = [(row.id, row.status, row.title) for row in rows]
    busy = len(tickets) - len(rows)
    notes = (f"{busy} of {len(tickets)} issues had a task already.",) if busy else ()
    return Result(
        "tasks", tuple(rows), Table(columns, cells, empty="No issue needs a task."), notes
    )


def start(
    config: Path | None,
    agents: list[WantedAgent],
    wait: float,
    add: object,
    *,
    attach: bool = False,
) -> Result:
    """`attach`: to the terminal of the first, which replaces this process."""
    from fleet.cli.agents.create import check, report
    from fleet.cli.terminal.progress import SetUpProgress
    from fleet.operations.tasks.show import ShowTask

    client = connect(config=config).this_machine("Starting an agent in a terminal of yours")
    check(client, agents)
    unseen = client.unseen_changes(agents[0].spec)
    tasks = add(client, agents)  # type: ignore[operator]
    try:
        names = ", ".join(agent.branch for agent in agents)
        with SetUpProgress(f"Starting {names}", client.home / "tasks", tasks):
            late = client.start(tasks, patience=wait)
    except KeyboardInterrupt:
        say(
            f"Interrupted: `fleet list --repair` continues with {' '.join(tasks)}, `fleet kill` ends them."
        )
        raise
    result = report(client, tasks, late)
    if attach and (not late or _has_terminal(client, tasks[0])):
        for note in unseen:
            say(note)
        become(client.attach_argv(client.call(ShowTask(tasks[0])).runs[-1].id))
    return result._replace(notes=unseen)


def _has_terminal(client: Client, task: str) -> bool:
    """Whether its program runs, and asks what only a person there can answer."""
    from fleet.cli.agents.calls import sight
    from fleet.operations.tasks.show import ShowTask

    return sight(client, client.call(ShowTask(task))).get("doing") == "first-start"


def become(argv: list[str]) -> NoReturn:
    """Replace this process with the program that shows the terminal."""
    sys.stdout.flush()
    os.execvp(argv[0], argv)  # noqa: S606  # argv is a list; there is no shell


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
    from fleet.cli.agents.calls import reconcile, wish_notes
    from fleet.cli.agents.views import agent_table

    client = connect(config=config)
    notes = reconcile(client.this_machine("Repairing")) if repair else ()
    request = agents_at_work(client, everything=everything, everywhere=everywhere)
    if watch and not wants_json():
        _watch(client, request, grouped=grouped)
    seen = client.observed(client.call(request))
    view = agent_table(seen, client.now(), grouped=grouped, everywhere=not request.project)
    return Result("agents", seen, view, notes=(*notes, *wish_notes(seen)))


def agents_at_work(client: Client, *, everything: bool, everywhere: bool) -> ListAgents:
    """The rows that `fleet list` and `fleet workers` show."""
    from fleet.operations.shared.names import MAX_ROWS
    from fleet.operations.tasks.at_work import ListAgents

    return ListAgents(client.scope(everywhere=everywhere), everything, limit=MAX_ROWS)


def _watch(client: Client, request: ListAgents, *, grouped: bool) -> NoReturn:
    from fleet.cli.agents.views import agent_table
    from fleet.cli.terminal.live import Live

    with Live() as live:
        while True:
            seen = client.observed(client.call(request))
            everywhere = not request.project
            live.update(agent_table(seen, client.now(), grouped=grouped, everywhere=everywhere))
            client.wait(1.0)


@command(config=True)
@click.argument("name", metavar="AGENT", shell_complete=complete_agents_at_work)
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

    client = connect(config=config)
    check_ease(client, name, queue=queue)
    message = tell(client, name, text, file, wait=wait)
    if not queue:
        check_heard(client, message)
    return message._replace(notes=panel_notes(client, message))


@command(json=False, config=True)
@click.argument("name", metavar="AGENT", shell_complete=complete_agents_at_work)
def attach(name: str, config: Path | None) -> int:
    """Attach to an agent's terminal. Ctrl-Q detaches, also inside tmux; the agent keeps running.

    A terminal of another machine is reached through the server, if that machine is connected to it.
    """
    from fleet.operations.tasks.show import ShowTask

    client = connect(config=config)
    task = client.call(ShowTask(name))
    live = next((r for r in task.runs if not r.ending), None)
    if live is None or task.spec.mode != "terminal":
        how = "is not running" if live is None else "has no terminal"
        raise Refused(
            f"{task.task.id} {how}.",
            fix=f"`fleet logs {task.task.id}` shows its output, and where its last screen is saved.",
        )
    remote = client.server_of(live.id)
    if remote is None:
        become(client.this_machine("Attaching").attach_argv(live.id))
    from fleet.cli.agents.far_terminal import sit_down

    sit_down(remote, live.id)
    return 0


@command(config=True)
@click.argument("pattern", required=False, shell_complete=complete_agents_at_work)
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

    PATTERN is an agent's name, or a pattern with `*`; `fleet kept` lists what was kept. A branch
    onto which nothing was committed goes, too.
    """
    from fleet.cli.agents.calls import kill as end
    from fleet.cli.agents.kill import confirm, kill_summary, matches
    from fleet.cli.terminal.progress import ProgressLine

    client = connect(config=config).this_machine("Removing a worktree")
    agents = matches(client, pattern, batch)
    confirm(agents, force=force)
    try:
        with ProgressLine(f"Ending {', '.join(agent.branch or agent.task for agent in agents)}"):
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
@click.argument("name", metavar="AGENT", shell_complete=complete_agents_at_work)
def explain(name: str, config: Path | None) -> Result:
    """Show what an agent is doing, and how Fleet knows."""
    from fleet.cli.agents.calls import answers, sight_anywhere
    from fleet.cli.agents.views import explanation
    from fleet.operations.tasks.show import ShowTask

    client = connect(config=config)
    task = client.call(ShowTask(name))
    seen = sight_anywhere(client, task)
    notes: tuple[str, ...] = (f"Answer it: {answers(name)}",) if seen.get("asks") else ()
    if seen.get("always"):
        notes += (f"fleet approve {name} --always chooses: {seen['always']}",)
    return Result("activity", seen, explanation(task, seen), notes=notes)
