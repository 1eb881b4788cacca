"""Tasks: add, tasks, show, ready, cancel, retry, close, pause, resume, comment, dep."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NoReturn

import click

from fleet.cli.tasks.views import detail_view, ready_view, task_table
from fleet.cli.terminal.completion import (
    complete_agents,
    complete_coders,
    complete_statuses,
    complete_tasks,
)
from fleet.cli.terminal.frame import command, group, wants_json
from fleet.cli.terminal.render import Result, Text
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.client import Client
    from fleet.operations.tasks.list import ListTasks
    from fleet.operations.tasks.rows import TaskRow

NONE_OPEN = "No open tasks. `fleet tasks --all` lists the ended ones."
MOST_COUNTED = 100  # tasks that are done and not landed
OFF = "No supervisor is running, so nothing starts. Start one: fleet run"

task_argument = click.argument("task", shell_complete=complete_tasks)
limit_option = click.option(
    "-n", "--limit", type=click.IntRange(1, 10_000), default=50, help="Show at most this many."
)


@command(config=True)
@click.argument("title")
@click.option("-p", "--prompt", help="The prompt. Default: the title.")
@click.option(
    "--prompt-file",
    metavar="FILE",
    type=click.Path(),
    help="Read the prompt from this file; `-` is stdin.",
)
@click.option("-d", "--description", help="The same as --prompt.")
@click.option(
    "-a",
    "--agent",
    default="",
    shell_complete=complete_agents,
    help="The agent (role) for the task; `default`: the supervisor's, when the task starts.",
)
@click.option("--coder", default="", shell_complete=complete_coders, help="The coder for the task.")
@click.option("--model", default="", help="The model for the task.")
@click.option("--priority", type=int, default=2, help="0 is first, 4 is last.")
@click.option(
    "--after",
    multiple=True,
    metavar="TASK",
    shell_complete=complete_tasks,
    help="A task to wait for. May be repeated.",
)
@click.option("--label", multiple=True, help="A label. May be repeated.")
@click.option(
    "--cwd", type=click.Path(), help="The directory to work in. Default: the current one."
)
@click.option("--in-place", is_flag=True, help="Work in that directory itself, not in a worktree.")
@click.option("--base", default="", help="The commit to start from.")
@click.option("--branch", default="", help="The name of its branch.")
@click.option("--review", is_flag=True, help="Wait for your review before the task is done.")
@click.option(
    "--attempts", type=click.IntRange(1, 100), help="How many runs the task gets before it fails."
)
@click.option(
    "--time-limit", type=click.IntRange(min=1), help="The maximum seconds that one run may take."
)
@click.option(
    "--budget",
    multiple=True,
    metavar="AMOUNT",
    help="A limit for all its runs: `$5`, `200k tokens`, `90m`. May be repeated.",
)
@click.option(
    "--gate",
    default="",
    metavar="COMMAND",
    help="A command that must pass before the task is done.",
)
@click.option("--team", default="", help="The team it belongs to.")
@click.option("--swarm", default="", help="The swarm it belongs to.")
def add(title: str, cwd: str | None, config: Path | None, **given: object) -> Result:
    """Queue a task."""
    from fleet.cli.tasks.add import request, settings_dir, where_of

    client = _client(config, cwd=settings_dir(cwd))
    where = where_of(client, cwd, in_place=bool(given["in_place"]))
    row = client.call(request(title, given, where))
    at = f"{row.cwd or row.project}{' (in place)' if where.in_place else ''}"
    text = f"Added {row.id}: {row.title}  [{row.agent}, {row.status}, {at}]"
    notes = _supervisor_note(client, [row])
    if row.status == "held":
        notes = (f"A team-lead or a coordinator must let it run: fleet resume {row.id}", *notes)
    return Result("task", row, Text(text), notes=notes)


@command(config=True)
@click.argument("team", required=False, default="")
@click.option("--all", "everything", is_flag=True, help="Also list done and cancelled tasks.")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    shell_complete=complete_statuses,
    help="Only tasks with this status. May be repeated.",
)
@click.option("--here", is_flag=True, help="Only tasks of this project.")
@limit_option
@click.option("--watch", is_flag=True, help="Keep updating the list.")
def tasks(
    team: str,
    everything: bool,  # noqa: FBT001  # click passes by name
    statuses: tuple[str, ...],
    here: bool,  # noqa: FBT001
    limit: int,
    watch: bool,  # noqa: FBT001
    config: Path | None,
) -> Result:
    """List the tasks, newest first."""
    from fleet.operations.tasks.list import ListTasks

    if re.fullmatch(r"t-\d+(\.\d+)?", team):
        raise BadInput(f"'{team}' is a task, not a team.", fix=f"fleet show {team}")
    client = _client(config)
    project = client.project_or_cwd if here else ""
    request = ListTasks(project, team, everything, statuses, limit=limit)
    if watch and not wants_json():
        _watch(client, request)
    rows = client.call(request)
    narrowed = bool(everything or statuses or team)
    view = task_table(rows, client.now(), empty="No tasks." if narrowed else NONE_OPEN)
    left = () if narrowed or wants_json() else _unsettled(client, rows)
    return Result("tasks", rows, view, notes=(*left, *_supervisor_note(client, rows)))


def _unsettled(client: Client, rows: Sequence[TaskRow]) -> tuple[str, ...]:
    """What has ended and still needs a person, and what to type."""
    failed = sum(row.status == "failed" for row in rows)
    landing = () if client.is_remote else _not_landed(client)  # its repositories are not here
    again = f"{failed} failed: `fleet retry TASK` tries again, `fleet cancel TASK` drops it."
    return (*((again,) if failed else ()), *landing)


def _not_landed(client: Client) -> tuple[str, ...]:
    done = client.this_machine("Merging").workspaces.not_merged(MOST_COUNTED)
    more = " or more" if len(done) == MOST_COUNTED else ""
    words = f"{len(done)}{more} done and not landed: `fleet merge TASK` lands one."
    return (f"{words} `fleet status` lists them.",) if done else ()


def _watch(client: Client, request: ListTasks) -> NoReturn:
    from fleet.cli.terminal.live import Live

    with Live() as live:
        while True:
            rows = client.call(request)
            live.update(task_table(rows, client.now()))
            client.wait(1.0)


def _supervisor_note(client: Client, rows: Sequence[TaskRow]) -> tuple[str, ...]:
    waiting = any(t.status in {"ready", "waiting", "postponed"} for t in rows)
    inside = os.environ.get("FLEET_RUN_ID")
    return (OFF,) if waiting and not inside and not client.supervised() else ()


@command(config=True)
@limit_option
def ready(limit: int, config: Path | None) -> Result:
    """List the tasks that could start now."""
    from fleet.operations.tasks.list import ReadyTasks

    client = _client(config)
    rows = client.call(ReadyTasks(limit))
    return Result("tasks", rows, ready_view(rows), notes=_supervisor_note(client, rows))


@command(config=True)
@task_argument
def show(task: str, config: Path | None) -> Result:
    """Show a task, its runs, and why it is not running."""
    from fleet.operations.tasks.show import ShowTask

    client = _client(config)
    detail = client.call(ShowTask(task))
    notes = _supervisor_note(client, [detail.task])
    return Result("task_detail", detail, detail_view(detail, client.now()), notes=notes)


@command(config=True)
@task_argument
def cancel(task: str, config: Path | None) -> Result:
    """Cancel a task; if it is running, its run is ended first."""
    from fleet.operations.tasks.change import CancelTask
    from fleet.operations.tasks.show import ShowTask

    client = _client(config)
    cancelled = client.call(CancelTask(task))
    row = client.call(ShowTask(cancelled.id)).task
    return _changed(row, f"is {row.status}")


@command(config=True)
@task_argument
def retry(task: str, config: Path | None) -> Result:
    """Queue an ended task again."""
    from fleet.operations.tasks.change import RetryTask

    client = _client(config)
    row = client.call(RetryTask(task))
    return _changed(row, "is open again", _supervisor_note(client, [row]))


@command(config=True)
@task_argument
def reopen(task: str, config: Path | None) -> Result:
    """Continue a task: take the answer from its Q&A.md, or queue it again.

    Write the answer below the question, under `## A:`.
    """
    from fleet.cli.tasks.reopen import reopen_task
    from fleet.operations.tasks.show import ShowTask

    client = _client(config)
    done = reopen_task(client, task)
    row = client.call(ShowTask(task)).task
    text = "\n".join(done) or f"{row.id} is {row.status}."
    return Result("task", row, Text(text), notes=_supervisor_note(client, [row]))


@command(config=True)
@task_argument
@click.option("--reason", default="Closed.", help="The reason.")
def close(task: str, reason: str, config: Path | None) -> Result:
    """Close a task: mark it as done."""
    from fleet.operations.tasks.change import CloseTask

    row = _client(config).call(CloseTask(task, reason))
    return _changed(row, "is done" if row.state == "done" else "is done when this run ends")


@command(config=True)
@task_argument
def pause(task: str, config: Path | None) -> Result:
    """Keep a task from starting."""
    from fleet.operations.tasks.change import PauseTask

    row = _client(config).call(PauseTask(task))
    runs_on = "finishes its current run, then " if row.state == "running" else ""
    return _changed(row, f"{runs_on}does not start until you resume it")


@command(config=True)
@task_argument
def resume(task: str, config: Path | None) -> Result:
    """Let a paused or postponed task start."""
    from fleet.operations.tasks.change import ResumeTask

    client = _client(config)
    row = client.call(ResumeTask(task))
    words = "may start" if row.status == "ready" else f"is {row.status}"
    return _changed(row, words, _supervisor_note(client, [row]))


@command(config=True)
@task_argument
@click.argument("text")
def comment(task: str, text: str, config: Path | None) -> Result:
    """Write a note on a task."""
    from fleet.operations.messages.ask_answer_send import Comment

    note = _client(config).call(Comment(task, text))
    return Result("message", note, Text(f"{note.task} has your note ({note.id})."))


@group()
def dep() -> None:
    """Add and remove the tasks that a task waits for."""


@dep.command("add", config=True)
@task_argument
@click.argument("needs", shell_complete=complete_tasks)
def dep_add(task: str, needs: str, config: Path | None) -> Result:
    """Make TASK wait for NEEDS."""
    from fleet.operations.tasks.dependencies import AddDependency

    return _changed(_client(config).call(AddDependency(task, needs)), f"waits for {needs}")


@dep.command("rm", config=True)
@task_argument
@click.argument("needs", shell_complete=complete_tasks)
def dep_rm(task: str, needs: str, config: Path | None) -> Result:
    """Stop TASK from waiting for NEEDS."""
    from fleet.operations.tasks.dependencies import RemoveDependency

    row = _client(config).call(RemoveDependency(task, needs))
    return _changed(row, f"does not wait for {needs}")


def _client(config: Path | None, *, cwd: Path | None = None) -> Client:
    from fleet.cli.terminal.connect import connect

    return connect(config=config, cwd=cwd)


def _changed(row: TaskRow, words: str, notes: tuple[str, ...] = ()) -> Result:
    return Result("task", row, Text(f"{row.id} {words}."), notes=notes)
