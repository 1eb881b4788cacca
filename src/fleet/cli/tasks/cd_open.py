"""`fleet cd` and `fleet open`: the directory in which a task is worked on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.completion import complete_tasks
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.render import Result, Text
from fleet.domain.errors import BadInput, Refused

if TYPE_CHECKING:
    from fleet.client import LocalClient
    from fleet.operations.tasks.show import TaskDetail

CODE = "code"  # the editor of those who have chosen none, if it is installed


@command(config=True)
@click.argument("task", shell_complete=complete_tasks)
def cd(task: str, config: Path | None) -> Result:
    """Print the directory in which TASK is worked on.

    A program cannot change its shell's directory; your shell can:

        cd "$(fleet cd t-3)"
        git -C "$(fleet cd fix-login)" log

    The script of `fleet completion` has a function for it: fleet-cd t-3
    """
    detail, path = _directory(config, task)
    return Result("directory", {"task": detail.task.id, "path": str(path)}, Text(str(path)))


@command("open", config=True)
@click.argument("task", shell_complete=complete_tasks)
@click.option("--editor", default="", help="Open it with this. Default: $VISUAL, $EDITOR or code.")
def open_(task: str, editor: str, config: Path | None) -> Result:
    """Open the directory in which TASK is worked on in your editor."""
    import shutil

    from fleet.cli.terminal.editor import chosen_editor, run_editor

    detail, path = _directory(config, task)
    program = editor or chosen_editor() or (shutil.which(CODE) and CODE)
    if not program:
        raise BadInput(
            "You have chosen no editor, and `code` is not installed.",
            fix=f"Set EDITOR, or: fleet open {task} --editor PROGRAM",
        )
    fix = f"Name another: fleet open {task} --editor PROGRAM" if editor else "Set EDITOR."
    if ended := run_editor(program, path, fix=fix):
        raise Refused(f"{program} ended with status {ended}.", fix=f"The directory is {path}.")
    return Result("directory", {"task": detail.task.id, "path": str(path)}, Text(f"Opened {path}."))


def _directory(config: Path | None, name: str) -> tuple[TaskDetail, Path]:
    """Raise `Refused` with the reason when there is none on this machine."""
    from fleet.operations.tasks.show import ShowTask

    client = connect(config=config).this_machine("Opening the directory of a task")
    detail = client.call(ShowTask(name))
    return detail, _existing(client, detail)


def _existing(client: LocalClient, detail: TaskDetail) -> Path:
    task = detail.task.id
    run = next((r for r in reversed(detail.runs) if r.path), None)
    if run is None:
        raise Refused(
            f"{task} has no directory of its own yet: no run of it has started.",
            fix=f"`fleet show {task}` says what it waits for.",
            code="no_workspace",
        )
    if run.host != client.host:
        raise Refused(
            f"{task} ran on the host {run.host}, and its directory is there: {run.path}",
            fix=f"Run `fleet cd {task}` on that machine.",
            code="elsewhere",
        )
    path = Path(run.path)
    if not path.is_dir() and run.state == "claimed":
        raise Refused(
            f"The worktree of {task} is being set up.",
            fix=f"`fleet logs {task}` shows how far it is.",
            code="starting",
        )
    if not path.is_dir() and (landed := detail.task.landed):
        raise Refused(
            f"{task} has landed ({landed[:12]}), and its worktree was removed.",
            fix=f"`fleet diff {task}` shows what it changed.",
            code="removed",
        )
    if not path.is_dir():
        raise Refused(
            f"The worktree of {task} was removed.",
            fix=f"Its branch is {run.branch}; `fleet kept` lists work that was not committed.",
            code="removed",
        )
    return path
