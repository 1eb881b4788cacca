"""`fleet merge`: a task's way onto the base branch, by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.completion import complete_tasks_to_land
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Result, Text
from fleet.domain.errors import BadInput, Refused

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.ports import MergeRow


@command(config=True)
@click.argument("task", metavar="TASK|BRANCH", shell_complete=complete_tasks_to_land)
@click.option("--into", default="", metavar="BRANCH", help="The branch to merge into.")
@click.option("--force", is_flag=True, help="Also merge work that is not done, or failed its gate.")
@click.option("--why", default="", help="The reason for --force.")
def merge(*, task: str, into: str, force: bool, why: str, config: Path | None) -> Result:
    """Merge a task's branch into the branch that the task started from.

    The merged result must have passed the gate, if there is one; if it has not been tested yet,
    this tests and lands it as `fleet land TASK --now` does.

    The branch is fast-forwarded where that is possible; otherwise git makes a merge commit. The
    merge is refused, and nothing changes, when the task's worktree has uncommitted work, when the
    branch to merge into is checked out with changes of its own, and when there is a conflict.

    `fleet worktree merge` is the same command.
    """
    from fleet.operations.worktrees import MergeWorktree

    if force and not why.strip():
        raise BadInput("--force needs a reason.", fix="Say it: --why TEXT")
    client = connect(config=config)
    try:
        merged = client.call(MergeWorktree(task, into, why if force else ""))
    except Refused as error:
        if error.code != "untested":
            raise
        from fleet.cli.landing.land import land_now

        return land_now(client, (task,), into)
    return Result("merged", merged, Text(_sentence(merged)))


def _sentence(merged: MergeRow) -> str:
    if merged.nothing:
        return f"{merged.onto} already has all of {merged.branch}."
    return f"Merged {merged.branch} into {merged.onto} ({merged.commit[:12]})."
