"""`fleet worktree`: what an agent's worktree holds, and how its work gets home."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.landing.merge import merge
from fleet.cli.terminal.completion import complete_tasks
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import group
from fleet.cli.terminal.view import Column, Result, Table, Text

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.cli.team.lists import Columns
    from fleet.ports import WorktreeRow

handle_argument = click.argument("handle", shell_complete=complete_tasks)


@group()
def worktree() -> None:
    """Show, commit, push and merge the worktree of a task."""


@worktree.command(config=True)
@handle_argument
def status(*, handle: str, config: Path | None) -> Result:
    """Show the worktree of HANDLE: a task, a run or a branch."""
    from fleet.operations.worktrees import ShowWorktree

    row = connect(config=config).call(ShowWorktree(handle))
    rows = [(file.change, file.path) for file in row.files]
    columns: Columns = ["change", Column("file", flexible=True)]
    return Result(
        "worktree", row, Table(columns, rows, empty="Everything is committed."), _notes(row)
    )


def _notes(row: WorktreeRow) -> tuple[str, ...]:
    head = f"{row.branch or '(no branch)'} at {row.head[:12]} in {row.path}"
    count = f"{row.ahead} ahead, {row.behind} behind, {row.unpushed} not pushed"
    more = row.changes - len(row.files)
    doing = f"In progress: {', '.join(row.in_progress)}." if row.in_progress else ""
    notes = (f"{head}: {count}.", f"And {more} more files." if more else "", doing)
    return tuple(note for note in notes if note)


@worktree.command(config=True)
@handle_argument
@click.option("-m", "--message", required=True, help="The commit message.")
def commit(*, handle: str, message: str, config: Path | None) -> Result:
    """Commit all changes in the worktree of HANDLE.

    Git hooks run, unless agents are isolated: then a hook may be a file that an agent wrote.
    """
    from fleet.operations.worktrees import CommitWorktree

    done = connect(config=config).call(CommitWorktree(message, handle))
    files = "1 file" if done.files == 1 else f"{done.files} files"
    return Result("commit", done, Text(f"Committed {files} on {done.branch} ({done.commit[:12]})."))


@worktree.command(config=True)
@handle_argument
def push(*, handle: str, config: Path | None) -> Result:
    """Push the branch of HANDLE to origin, without force."""
    from fleet.operations.worktrees import PushWorktree

    done = connect(config=config).call(PushWorktree(handle))
    remote = f"{done.remote} ({done.address})" if done.address else done.remote
    had_all = f"{remote} already has all of {done.branch}."
    text = had_all if done.nothing else f"Pushed {done.branch} to {remote}."
    return Result("push", done, Text(text))


worktree.add_command(merge)  # `fleet merge`, under the name that claude-fleet gave it


@worktree.command(config=True)
@handle_argument
@click.option("--title", required=True, help="The title of the pull request.")
@click.option("--body", default="", help="The description of the pull request.")
@click.option("--base", default="", help="The branch to merge into.")
def pr(*, handle: str, title: str, body: str, base: str, config: Path | None) -> Result:
    """Push the branch of HANDLE as it is and open a pull request; `fleet pr open` tests it first."""
    from fleet.operations.worktrees import ProposeWorktree

    done = connect(config=config).call(ProposeWorktree(title, body, base, handle))
    return Result(
        "pull_request", done, Text(done.url or f"Opened a pull request for {done.branch}.")
    )
