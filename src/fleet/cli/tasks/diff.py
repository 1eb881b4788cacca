"""`fleet diff`: what a task has changed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from fleet.cli.terminal.completion import complete_tasks
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.view import Column, Raw, Result, Table, Text
from fleet.domain.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.client import Client, LocalClient
    from fleet.operations.landing.review import DiffTask
    from fleet.ports import FileDiff, Hunk, TaskDiff


@command(config=True)
@click.argument("task", metavar="TASK|BRANCH", shell_complete=complete_tasks)
@click.option("--stat", is_flag=True, help="Show only how much changed in each file.")
@click.option("--name-only", is_flag=True, help="Show only the names of the changed files.")
@click.option("--against", default="", metavar="BRANCH", help="Show what it would bring to BRANCH.")
@click.option("--run", type=click.IntRange(1), default=None, help="Only what run N changed.")
@click.option("--path", default="", metavar="FILE", help="Show only this file.")
def diff(
    *,
    task: str,
    stat: bool,
    name_only: bool,
    against: str,
    run: int | None,
    path: str,
    config: Path | None,
) -> Result:
    """Show what a task itself has changed since it began, committed or not.

    What the tasks it waited for brought is left out. On a terminal git shows it, with your colours,
    your pager and your own diff program.
    """
    from fleet.operations.landing.review import DiffTask
    from fleet.operations.shared.elsewhere import ELSEWHERE

    if stat and name_only:
        raise BadInput("--stat and --name-only cannot be used together.", fix="Leave one out.")
    client = connect(config=config)
    request = DiffTask(task, against, run or 0, path, stat=stat or name_only)
    if client.is_remote or wants_json() or path:
        return _parts(client, request, name_only=name_only)
    local = client.this_machine("Showing a diff")
    try:
        return _by_git(local, request, "--stat" if stat else "--name-only" if name_only else "")
    except Unavailable as error:
        if error.code != ELSEWHERE:
            raise
        return _parts(client, request, name_only=name_only)  # the host is asked, if it is linked


def _by_git(client: LocalClient, request: DiffTask, how: str) -> Result:
    from fleet.cli.terminal.output import colours, is_terminal
    from fleet.domain.access import Permission
    from fleet.operations.shared.names import the_run, the_task

    task = the_task(client.context, request.task, Permission.READ)
    if request.run:
        the_run(client.context, f"{task.id}.{request.run}", Permission.READ)
    against, number = request.against, request.run
    if is_terminal(sys.stdout):
        argv = client.workspaces.diff_command(
            task, *filter(None, [how]), against=against, number=number
        )
        if argv:
            plain = [] if colours(sys.stdout) else ["-c", "color.ui=never"]  # git knows no NO_COLOR
            become([argv[0], *plain, *argv[1:]])
        text = ""
    else:
        words = ["--stat=100"] if how == "--stat" else list(filter(None, [how]))
        text = client.workspaces.diff_text(task, *words, against=against, number=number)
    view = Raw(text) if text else Text(f"{task.id} has changed nothing.")
    return Result("diff", None, view)


def become(argv: list[str]) -> NoReturn:
    """Replace this process with git, which starts the person's pager."""
    sys.stdout.flush()
    os.execvp(argv[0], argv)  # noqa: S606  # argv is a list; there is no shell


def _parts(client: Client, request: DiffTask, *, name_only: bool) -> Result:
    done = client.call(request)
    view: Raw | Table | Text
    if not done.files:
        view = Text(f"{done.task} has changed nothing.")
    elif name_only:
        view = Raw("".join(f"{file.path}\n" for file in done.files))
    elif request.stat:
        columns: list[Column | str] = ["change", Column("file", flexible=True), "added", "removed"]
        view = Table(columns, [(f.change, f.path, f.added, f.removed) for f in done.files])
    else:
        view = Raw("".join(map(unified, done.files)))
    return Result("diff", done, view, _notes(done))


def _notes(done: TaskDiff) -> tuple[str, ...]:
    more = done.total - len(done.files)
    notes = [f"{more} more files changed than a reply has room for."] if more else []
    cut = [file for file in done.files if file.cut]
    notes += [f"{file.cut} lines of {file.path} were left out." for file in cut[:10]]
    if cut:
        notes.append(f"`fleet diff {done.task} --path FILE` shows one file.")
    return tuple(notes)


def unified(file: FileDiff) -> str:
    """The changes as git's unified diff, without the header lines that the reply does not have."""
    old, new = file.old_path or file.path, file.path
    lines = [f"diff --git a/{old} b/{new}"]
    if file.old_path:
        lines += [f"rename from {old}", f"rename to {new}"]
    if file.binary:
        lines.append(f"Binary files a/{old} and b/{new} differ")
    elif file.hunks:
        lines.append("--- /dev/null" if file.change == "added" else f"--- a/{old}")
        lines.append("+++ /dev/null" if file.change == "deleted" else f"+++ b/{new}")
    for hunk in file.hunks:
        lines += [_head(hunk), *hunk.lines]
    return "\n".join(lines) + "\n"


def _head(hunk: Hunk) -> str:
    old, new = f"{hunk.old_start},{hunk.old_lines}", f"{hunk.new_start},{hunk.new_lines}"
    return f"@@ -{old} +{new} @@ {hunk.heading}".rstrip()
