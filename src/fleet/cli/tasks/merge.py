"""`fleet diff` and `fleet merge`: what a task has changed, and its way onto the base branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.completion import complete_tasks
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Raw, Result, Text

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.ports import MergeRow

task_argument = click.argument("task", metavar="TASK|BRANCH", shell_complete=complete_tasks)


@command(config=True)
@task_argument
@click.option("--stat", is_flag=True, help="Show only how much changed in each file.")
def diff(*, task: str, stat: bool, config: Path | None) -> Result:
    """Show what a task has changed since it started, committed or not."""
    from fleet.cli.terminal.connect import connect_here
    from fleet.domain.access import Permission
    from fleet.operations.shared.names import the_task

    client = connect_here(config=config)
    row = the_task(client.context, task, Permission.READ)
    text = client.workspaces.diff(row, stat=stat)
    view = Raw(text) if text else Text(f"{row.id} has changed nothing.")
    return Result("diff", {"task": row.id, "diff": text}, view)


@command(config=True)
@task_argument
@click.option("--into", default="", metavar="BRANCH", help="The branch to merge into.")
def merge(*, task: str, into: str, config: Path | None) -> Result:
    """Merge a task's branch into the branch that its project has checked out.

    The branch is fast-forwarded where that is possible; otherwise git makes a merge commit. The
    merge is refused, and nothing changes, when the task's worktree has uncommitted work, when the
    branch to merge into is checked out with changes of its own, and when there is a conflict.

    `fleet worktree merge` is the same command.
    """
    from fleet.cli.terminal.connect import connect
    from fleet.operations.worktrees import MergeWorktree

    merged = connect(config=config).call(MergeWorktree(task, into))
    return Result("merged", merged, Text(_sentence(merged)))


def _sentence(merged: MergeRow) -> str:
    if merged.nothing:
        return f"{merged.onto} already has all of {merged.branch}."
    return f"Merged {merged.branch} into {merged.onto} ({merged.commit[:12]})."
