"""Tasks: add, tasks, show, ready, cancel, retry, close, pause, resume, comment, dep."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click

from fleet.cli.choice_options import choice_options
from fleet.cli.tasks.views import detail_view, ready_view, task_table
from fleet.cli.terminal.completion import (
    complete_statuses,
    complete_tasks,
    complete_tasks_for,
)
from fleet.cli.terminal.connect import connect, unsupervised
from fleet.cli.terminal.frame import command, group, wants_json
from fleet.cli.terminal.render import Result, Text
from fleet.domain.errors import BadInput, FleetError
from fleet.domain.forges.kinds import TITLES
from fleet.domain.task import need_of
from fleet.operations.shared.names import MAX_ROWS
from fleet.operations.tasks.statuses import RETRIED, TAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fleet.client import Client
    from fleet.operations.tasks.add_all import AddTasks
    from fleet.operations.tasks.change import AddTask
    from fleet.operations.tasks.list import ListTasks
    from fleet.operations.tasks.rows import TaskRow

NONE = 'No tasks yet: fleet add "TITLE" queues one.'
NONE_OPEN = "No open tasks. `fleet tasks --all` lists the ended ones."
ELSEWHERE = "Other projects have some: fleet tasks --everywhere"
MOST_LISTED = 50
MOST_COUNTED = 100  # tasks that are done and not landed
LET_RUN = "A team-lead or a coordinator must let them run: fleet resume TASK"

task_argument = click.argument("task", shell_complete=complete_tasks)


def tasks_argument(command: str, *, required: bool = True) -> Callable[..., Any]:
    """Several tasks that the command can take."""
    return click.argument(
        "tasks",
        nargs=-1,
        metavar="TASK...",
        required=required,
        shell_complete=complete_tasks_for(command),
    )


limit_option = click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, MAX_ROWS),
    default=MOST_LISTED,
    help="Show at most this many.",
)


@command(config=True)
@click.argument("title", required=False, default="")
@click.option(
    "-f",
    "--file",
    metavar="FILE",
    type=click.Path(),
    help="Add the tasks of this YAML file, all or none; `-` is stdin.",
)
@click.option("--again", is_flag=True, help="Add the tasks of the same file once more.")
@click.option("--dry-run", is_flag=True, help="Add nothing: show who would do it, and when.")
@click.option(
    "--issue",
    default="",
    metavar="URL",
    help=f"Add a task for this issue: {TITLES}.",
)
@click.option("-p", "--prompt", help="The prompt. Default: the title.")
@click.option(
    "--prompt-file",
    metavar="FILE",
    type=click.Path(),
    help="Read the prompt from this file; `-` is stdin.",
)
@click.option("-d", "--description", help="The same as --prompt.")
@choice_options
@click.option("--priority", type=int, default=2, help="0 is first, 4 is last.")
@click.option(
    "--after",
    multiple=True,
    metavar="TASK",
    shell_complete=complete_tasks,
    help="A task to wait for; TASK:landed: until its work is on its branch. May be repeated.",
)
@click.option("--label", multiple=True, help="A label. May be repeated.")
@click.option(
    "--needs",
    multiple=True,
    metavar="LABEL",
    help="What its host must have: a label, or the host's name. May be repeated.",
)
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
def add(
    title: str, file: str | None, cwd: str | None, config: Path | None, **given: object
) -> Result:
    """Queue a task, or the tasks of a file.

    In the file, `tasks:` is a list. Each task has a `title` and any option of this command as a
    key; `after` and `parent` can name other tasks of the file by their `name`. Options on the
    command line count for each task that does not have them.
    """
    from fleet.cli.tasks.add import for_issue, request, settings_dir, where_of

    issue = str(given.pop("issue"))
    if [bool(title), bool(file), bool(issue)].count(True) != 1:
        raise BadInput(
            "Give only one of: a title, --issue, --file."
            if title or file or issue
            else "The title is missing.",
            fix='fleet add "Fix the login", or fleet add --file tasks.yaml',
        )
    again, dry = bool(given.pop("again")), bool(given.pop("dry_run"))
    if dry and (file or issue):
        raise BadInput("--dry-run needs a title.", fix='fleet add "Fix the login" --dry-run')
    if file:
        return _add_all(file, {**given, "cwd": cwd}, config, again=again)
    client = connect(config=config, cwd=settings_dir(cwd))
    where = where_of(client, cwd, in_place=bool(given["in_place"]))
    order = request(title or issue, given, where)
    if dry:
        return _preview(client, order)
    unseen: tuple[str, ...] = ()
    if where.cwd is not None and not where.in_place:
        local = client.this_machine("Checking a repository")
        needs = [need_of(name)[0] for name in order.after]
        local.check_start(order.spec, order.project, needs)
        unseen = local.unseen_changes(order.spec)
    row = client.call(for_issue(order, issue) if issue else order)
    at = f"{row.cwd or row.project}{' (in place)' if where.in_place else ''}"
    text = f"Added {row.id}: {row.title}  [{row.agent}, {row.status}, {at}]"
    notes = (*unseen, *_supervisor_note(client, [row]))
    if row.status == "held":
        notes = (f"A team-lead or a coordinator must let it run: fleet resume {row.id}", *notes)
    return Result("task", row, Text(text), notes=notes)


def _preview(client: Client, order: AddTask) -> Result:
    from fleet.cli.terminal.human import counted
    from fleet.operations.insight.preview import PreviewTask

    draft = PreviewTask(order.project, order.spec, order.after, order.title, order.prompt)
    would = client.call(draft)
    where = "@".join(word for word in (would.model, would.node) if word)
    who = f"{would.agent} ({', '.join(word for word in (would.coder, where) if word)})"
    waits = [f"{each.why}{f' {each.fix}' if each.fix else ''}" for each in would.waits]
    ahead = f"{counted(would.ahead, 'ready task')} before it." if would.ahead else ""
    first = waits or ["" if would.ahead else "It could start at once."]
    text = " ".join(word for word in (f"{who} would do it.", *first, ahead) if word)
    return Result("preview", would, Text(text))


def _add_all(file: str, given: dict[str, object], config: Path | None, *, again: bool) -> Result:
    from functools import cache

    from fleet.cli.tasks.add import TaskPlace, settings_dir, where_of
    from fleet.cli.tasks.plan import check_starts, read_plan
    from fleet.operations.tasks.add_all import AddTasks

    @cache
    def directory_of(cwd: str | None, in_place: bool) -> TaskPlace:  # noqa: FBT001  # by position, for the cache
        return where_of(connect(config=config, cwd=settings_dir(cwd)), cwd, in_place=in_place)

    plan = read_plan(file, add, given, directory_of)
    client = connect(config=config)
    request = AddTasks(plan.tasks, again)
    try:
        if not client.is_remote:
            check_starts(client.this_machine("Checking a repository"), plan.tasks)
        rows = client.call(request) if client.is_remote else _in_one_commit(client, request)
    except FleetError as error:
        raise plan.located(error) from None
    view = task_table(rows, client.now())
    is_held = any(row.status == "held" for row in rows)
    waits = (LET_RUN,) if is_held else ()
    return Result("tasks", rows, view, notes=(*waits, *_supervisor_note(client, rows)))


def _in_one_commit(client: Client, request: AddTasks) -> tuple[TaskRow, ...]:
    local = client.this_machine("Adding")
    with local.together():
        return local.call(request)


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
@click.option("--everywhere", is_flag=True, help="List the tasks of every project.")
@click.option(
    "--here", is_flag=True, hidden=True, help="Only tasks of this project. This is the default."
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, MAX_ROWS),
    help=f"Show at most this many: {MOST_LISTED} if you do not say, all with --export.",
)
@click.option("--watch", is_flag=True, help="Keep updating the list.")
@click.option(
    "--tree", is_flag=True, help="Show tasks below their parent, or below what they wait for."
)
@click.option("--export", is_flag=True, help="Print YAML that `fleet add --file` takes.")
def tasks(
    team: str,
    everything: bool,  # noqa: FBT001  # click passes by name
    statuses: tuple[str, ...],
    everywhere: bool,  # noqa: FBT001
    here: bool,  # noqa: FBT001
    limit: int | None,
    watch: bool,  # noqa: FBT001
    tree: bool,  # noqa: FBT001
    export: bool,  # noqa: FBT001
    config: Path | None,
) -> Result:
    """List the tasks of this project, newest first; of a TEAM, those of every project."""
    from fleet.operations.tasks.list import ListTasks

    if re.fullmatch(r"t-\d+(\.\d+)?", team):
        raise BadInput(f"'{team}' is a task, not a team.", fix=f"fleet show {team}")
    if sum((tree, export, watch)) > 1:
        raise BadInput("--tree, --export and --watch cannot be used together.", fix="Give one.")
    client = connect(config=config)
    project = client.scope(everywhere=(everywhere or bool(team)) and not here)
    most = limit or (MAX_ROWS if export else MOST_LISTED)
    request = ListTasks(project, team, everything, statuses, limit=most)
    client.note_merged()
    empty, notes = partial(_nothing, client, request), partial(_notes, client, request)
    if tree or export:
        from fleet.cli.tasks.graph import show_export, show_tree

        return show_export(client, request) if export else show_tree(client, request, empty, notes)
    if watch and not wants_json():
        _watch(client, request)
    listed = client.call(replace(request, limit=min(most + 1, MAX_ROWS)))
    rows = client.measured(listed[:most])
    view = task_table(rows, client.now(), empty="" if rows else empty(), everywhere=not project)
    return Result("tasks", rows, view, notes=(*cut(listed, most), *notes(rows)))


def cut(listed: Sequence[object], most: int) -> tuple[str, ...]:
    """The note that the list was cut off, if it was."""
    wider = min(most * 10, MAX_ROWS)
    more = f"There are more than these {most}: `fleet tasks -n {wider}` lists more."
    return (more,) if len(listed) > most else ()


def _is_narrowed(request: ListTasks) -> bool:
    return bool(request.all or request.statuses or request.team)


def _notes(client: Client, request: ListTasks, rows: Sequence[TaskRow]) -> tuple[str, ...]:
    narrowed = _is_narrowed(request)
    left = () if narrowed or wants_json() else _unsettled(client, rows, request.project)
    return (*left, *_supervisor_note(client, rows))


def _nothing(client: Client, request: ListTasks) -> str:
    """The text for an empty list: whether there are tasks in other projects or states."""
    narrowed = _is_narrowed(request)
    if not narrowed and not client.call(replace(request, all=True, limit=1)):
        words = NONE
    else:
        words = "No tasks." if narrowed else NONE_OPEN
    if request.project and client.call(replace(request, project="", limit=1)):
        words = f"{words} {ELSEWHERE}"
    return words


def _unsettled(client: Client, rows: Sequence[TaskRow], project: str) -> tuple[str, ...]:
    """Notes on ended tasks that still need a person, with the commands to type."""
    failed = sum(row.status == "failed" for row in rows)
    again = f"{failed} failed: `fleet retry TASK` tries again, `fleet cancel TASK` drops it."
    return (
        *((again,) if failed else ()),
        *_not_landed(client, project),
        *_landing(client, project),
    )


def _landing(client: Client, project: str) -> tuple[str, ...]:
    from fleet.operations.tasks.list import ListTasks

    rows = client.call(ListTasks(project, statuses=("landing",), limit=MOST_COUNTED))
    more = " or more" if len(rows) == MOST_COUNTED else ""
    return (f"{len(rows)}{more} landing: `fleet land list` shows how far.",) if rows else ()


def _not_landed(client: Client, project: str) -> tuple[str, ...]:
    from fleet.operations.tasks.list import ListTasks

    if not client.call(ListTasks(project, statuses=("done",), limit=1)):
        return ()
    from fleet.operations.inbox import ListInbox

    kinds = ("not-landed", "conflict")
    done = client.call(ListInbox(project, kinds, limit=MOST_COUNTED))
    more = " or more" if len(done) == MOST_COUNTED else ""
    words = f"{len(done)}{more} done and not landed: `fleet land TASK` lands one."
    where = "fleet review" if project else "fleet review --all"
    return (f"{words} `{where}` lists them.",) if done else ()


def _watch(client: Client, request: ListTasks) -> NoReturn:
    from fleet.cli.terminal.live import Live

    with Live() as live:
        while True:
            listed = client.call(request)
            rows = client.measured(listed)
            live.update(task_table(rows, client.now(), everywhere=not request.project))
            client.wait(1.0)


def _supervisor_note(client: Client, rows: Sequence[TaskRow]) -> tuple[str, ...]:
    waiting = any(t.status in {"ready", "waiting", "postponed"} for t in rows)
    inside = os.environ.get("FLEET_RUN_ID")
    return unsupervised(client) if waiting and not inside else ()


@command(config=True)
@limit_option
def ready(limit: int, config: Path | None) -> Result:
    """List the tasks that could start now."""
    from fleet.operations.tasks.list import ReadyTasks

    client = connect(config=config)
    rows = client.call(ReadyTasks(limit))
    return Result("tasks", rows, ready_view(rows), notes=_supervisor_note(client, rows))


@command(config=True)
@task_argument
def show(task: str, config: Path | None) -> Result:
    """Show a task, its runs, and why it is not running."""
    from fleet.operations.tasks.show import ShowTask

    client = connect(config=config)
    client.note_merged()
    detail = client.call(ShowTask(task))
    detail = replace(detail, task=client.measured([detail.task])[0])
    notes = _supervisor_note(client, [detail.task])
    if detail.spec.mode == "terminal":
        from fleet.cli.agents.calls import screen_note

        notes += screen_note(client, detail)
    return Result("task_detail", detail, detail_view(detail, client.now()), notes=notes)


@command(config=True)
@tasks_argument("cancel")
@click.option("-f", "--force", is_flag=True, help="Do not ask for confirmation.")
def cancel(*, tasks: tuple[str, ...], force: bool, config: Path | None) -> Result:
    """Cancel tasks; those that are running are ended first.

    TASK may be a pattern: '*' is every task of this project that has not ended.
    """
    from fleet.cli.tasks.bulk import change, confirm, named
    from fleet.operations.tasks.change import CancelTask

    client = connect(config=config)
    meant = named(client, tasks, TAKES["cancel"])
    confirm(tasks, meant, "Cancel", force=force)
    return change(client, meant, CancelTask, lambda row: f"is {row.status}")


@command(config=True)
@tasks_argument("retry", required=False)
@click.option("--failed", is_flag=True, help="Retry every failed task of this project.")
def retry(*, tasks: tuple[str, ...], failed: bool, config: Path | None) -> Result:
    """Queue tasks again that have ended: failed, cancelled, done or in review.

    The next run continues on the branch of the one before. TASK may be a pattern, which means
    failed tasks: 'fix-*'.
    """
    from fleet.cli.tasks.bulk import change, named, with_status
    from fleet.operations.tasks.change import RetryTask

    if failed == bool(tasks):
        raise BadInput(
            "Name tasks, or give --failed for all that failed.",
            fix="fleet retry t-3, or fleet retry --failed",
        )
    client = connect(config=config)
    meant = with_status(client, "failed") if failed else named(client, tasks, RETRIED)
    if not meant:
        return Result("changes", [], Text("No task of this project has failed."))
    return change(
        client, meant, RetryTask, lambda _: "is open again", partial(_supervisor_note, client)
    )


@command(config=True)
@click.argument("task", shell_complete=complete_tasks_for("reopen"))
def reopen(task: str, config: Path | None) -> Result:
    """Continue a task: take the answer from its Q&A.md, or queue it again.

    Write the answer below the question, under `## A:`.
    """
    from fleet.cli.tasks.reopen import reopen_task
    from fleet.operations.tasks.show import ShowTask

    client = connect(config=config)
    done = reopen_task(client, task)
    row = client.call(ShowTask(task)).task
    text = "\n".join(done) or f"{row.id} is {row.status}."
    return Result("task", row, Text(text), notes=_supervisor_note(client, [row]))


@command(config=True)
@tasks_argument("close")
@click.option("--reason", default="Closed.", help="The reason.")
@click.option("-f", "--force", is_flag=True, help="Do not ask for confirmation.")
def close(*, tasks: tuple[str, ...], reason: str, force: bool, config: Path | None) -> Result:
    """Close tasks: mark them as done.

    An agent in a terminal is ended; its worktree and its branch stay.
    """
    from fleet.cli.agents.calls import check_between_turns
    from fleet.cli.tasks.bulk import change, confirm, named
    from fleet.operations.tasks.change import CloseTask

    client = connect(config=config)
    meant = named(client, tasks, TAKES["close"])
    confirm(tasks, meant, "Close", force=force)
    if len(meant) == 1:
        check_between_turns(client, meant[0])
    return change(client, meant, lambda task: CloseTask(task, reason), _closed)


def _closed(row: TaskRow) -> str:
    return "is done" if row.state == "done" else "is done when this run ends"


@command(config=True)
@tasks_argument("pause")
def pause(*, tasks: tuple[str, ...], config: Path | None) -> Result:
    """Keep tasks from starting."""
    from fleet.cli.tasks.bulk import change, named
    from fleet.operations.tasks.change import PauseTask

    client = connect(config=config)
    return change(client, named(client, tasks, TAKES["pause"]), PauseTask, _paused)


def _paused(row: TaskRow) -> str:
    runs_on = "finishes its current run, then " if row.state == "running" else ""
    return f"{runs_on}does not start until you resume it"


@command(config=True)
@tasks_argument("resume")
def resume(*, tasks: tuple[str, ...], config: Path | None) -> Result:
    """Let paused or postponed tasks start."""
    from fleet.cli.tasks.bulk import change, named
    from fleet.operations.tasks.change import ResumeTask

    client = connect(config=config)
    meant = named(client, tasks, TAKES["resume"])
    return change(client, meant, ResumeTask, _resumed, partial(_supervisor_note, client))


def _resumed(row: TaskRow) -> str:
    return "may start" if row.status == "ready" else f"is {row.status}"


@command(config=True)
@task_argument
@click.argument("text")
@click.option("--file", "path", default="", help="A file of the task's work that it is about.")
@click.option("--line", type=click.IntRange(1), default=None, help="A line of that file.")
def comment(task: str, text: str, path: str, line: int | None, config: Path | None) -> Result:
    """Write a note on a task.

    With --file it is a remark on the task's work, which `fleet send-back` gives to the agent.
    """
    from fleet.operations.messages.ask_answer_send import Comment

    if line and not path:
        raise BadInput("--line needs --file.", fix="Name the file: --file FILE")
    client = connect(config=config)
    note = client.call(Comment(task, text, path, line or 0))
    hint = (f"`fleet send-back {note.task}` gives it to the agent.",) if path else ()
    return Result("message", note, Text(f"Added the note {note.id} to {note.task}."), hint)


@command("send-back", config=True)
@task_argument
@click.argument("text", required=False, default="")
def send_back(task: str, text: str, config: Path | None) -> Result:
    """Send a task's work back to its agent, with TEXT and all remarks on its files.

    The agent goes on in its own conversation and worktree. When it is done again, work that was
    waiting to land waits again.
    """
    from fleet.operations.tasks.send_back import SendBack

    client = connect(config=config)
    row = client.call(SendBack(task, text))
    return Result(
        "task", row, Text(f"Sent {row.id} back to its agent."), _supervisor_note(client, [row])
    )


@group()
def dep() -> None:
    """Add and remove the tasks that a task waits for."""


@dep.command("add", config=True)
@task_argument
@click.argument("needs", shell_complete=complete_tasks)
def dep_add(task: str, needs: str, config: Path | None) -> Result:
    """Make TASK wait for NEEDS."""
    from fleet.operations.tasks.dependencies import AddDependency

    client = connect(config=config)
    if not client.is_remote:
        client.this_machine("Checking a repository").check_dependency(task, needs)
    return _changed(client.call(AddDependency(task, needs)), f"waits for {needs}")


@dep.command("rm", config=True)
@task_argument
@click.argument("needs", shell_complete=complete_tasks)
def dep_rm(task: str, needs: str, config: Path | None) -> Result:
    """Stop TASK from waiting for NEEDS."""
    from fleet.operations.tasks.dependencies import RemoveDependency

    row = connect(config=config).call(RemoveDependency(task, needs))
    return _changed(row, f"does not wait for {needs}")


def _changed(row: TaskRow, words: str, notes: tuple[str, ...] = ()) -> Result:
    return Result("task", row, Text(f"{row.id} {words}."), notes=notes)
