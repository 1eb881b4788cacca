"""Work in worktrees: looked at, merged, brought back, tidied up. Git on this host does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.frame import command, group
from fleet.cli.terminal.view import Column, Raw, Result, Table, Text

if TYPE_CHECKING:
    from fleet.app.workspaces.manage import Cleared, KeptWork, Tidied
    from fleet.client import Client
    from fleet.domain.task import Task

COLUMNS = (
    Column("ID"),
    Column("WHEN"),
    Column("BRANCH", flexible=True),
    Column("WHAT", flexible=True),
)
name_argument = click.argument("name", metavar="TASK|BRANCH")


@command(config=True)
@name_argument
@click.option("--stat", is_flag=True, help="How much changed in which file, not what.")
def diff(name: str, stat: bool, config: Path | None) -> Result:  # noqa: FBT001  # click passes by name
    """Show what a task has changed since it began, committed or not."""
    client = _client(config)
    task = _task(client, name)
    shown = client.app.workspaces.diff(task, stat=stat)
    data = {"task": task.id, "diff": shown}
    return Result("diff", data, Raw(shown) if shown else Text(f"{task.id} has changed nothing."))


@command(config=True)
@name_argument
@click.option("--into", default="", metavar="REF", help="The branch to merge onto.")
def merge(name: str, into: str, config: Path | None) -> Result:
    """Merge a task's branch onto the branch that its project has checked out.

    It goes forward where it can, else a merge commit is made. It is refused, and nothing changes,
    when work is not committed, when the checkout of that branch has changes of its own, and when
    there is a conflict.
    """
    client = _client(config)
    task = _task(client, name)
    done = client.app.workspaces.merge(task, into)
    if done.nothing:
        words = f"{done.onto} has all of {done.branch} already."
    else:
        how = "went forward to" if done.fast_forward else "has, by a merge commit,"
        words = f"{done.onto} {how} {done.branch} ({done.commit[:12]})."
    return Result("merged", done, Text(words))


@group(invoke_without_command=True, json=True, config=True)
def kept(config: Path | None) -> Result | None:
    """List, restore or drop work that was saved before its worktree went.

    It is under `refs/fleet/kept/` in the project's repository: commits, uncommitted changes and
    untracked files; files that git ignores are not kept.
    """
    if click.get_current_context().invoked_subcommand:
        return None
    return _kept(config)


@kept.command("list", config=True)
def kept_list(config: Path | None) -> Result:
    """List what is kept in this project's repository."""
    return _kept(config)


@kept.command("restore", config=True)
@click.argument("name", metavar="ID")
@click.option("--branch", default="", help="The name of the new branch.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Make a worktree there, in which what was not committed is not committed.",
)
def kept_restore(name: str, branch: str, into: Path | None, config: Path | None) -> Result:
    """Bring kept work back on a new branch; it stays kept."""
    where = into.expanduser().absolute() if into else None
    done = _client(config).app.workspaces.restore(name, branch=branch, into=where)
    place = f" in {done.path}" if done.path else ""
    return Result("restored", done, Text(f"{done.kept} is on the branch {done.branch}{place}."))


@kept.command("drop", config=True)
@click.argument("name", metavar="ID")
def kept_drop(name: str, config: Path | None) -> Result:
    """Forget kept work for good."""
    done = _client(config).app.workspaces.drop(name)
    data = {"id": done.id, "commit": done.commit}
    words = (
        f"{done.id} is dropped; until git tidies up, `git branch NAME {done.commit[:12]}` has it."
    )
    return Result("dropped", data, Text(words))


@command(config=True)
@click.option("--dry-run", is_flag=True, help="Say what would be done.")
@click.option(
    "--days", type=click.FloatRange(min=0), default=7, help="Only of tasks that ended so long ago."
)
def gc(dry_run: bool, days: float, config: Path | None) -> Result:  # noqa: FBT001  # click
    """Remove the worktrees of tasks that ended; what is only there is kept first.

    It also finishes removals that were interrupted, and lists worktrees and branches that no task
    has. Those are not removed.
    """
    done = _client(config).app.workspaces.tidy(days=days, dry_run=dry_run)
    return Result("gc", done, Text("\n".join(_told(done)) or "There is nothing to tidy up."))


def _told(done: Tidied) -> list[str]:
    verb = "Would remove" if done.dry_run else "Removed"
    lines = []
    for one in done.cleared:
        lines += [f"{verb} {path} ({one.task})." for path in one.paths]
        lines += _aside(one)
    for orphan in done.orphans:
        place = f" in {orphan.project}" if orphan.project else ""
        lines.append(f"No task has the {orphan.what} {orphan.name}{place}; it stays.")
    return lines


def _aside(one: Cleared) -> list[str]:
    lines = [f"Kept its work: {name} (fleet kept restore {name})." for name in one.kept]
    lines += [f"Deleted the branch {name}, which is merged or pushed." for name in one.branches]
    return [*lines, *(f"{one.task}: {words}" for words in one.said)]


def _kept(config: Path | None) -> Result:
    from fleet.cli.terminal.human import moment

    found = _client(config).app.workspaces.kept()
    rows = [(k.id, moment(k.at), k.branch, _what(k)) for k in found]
    return Result("kept", found, Table(COLUMNS, rows, empty="Nothing is kept in this repository."))


def _what(one: KeptWork) -> str:
    what = "uncommitted work" if one.uncommitted else "commits"
    return " ".join((what, *one.notes))


def _client(config: Path | None) -> Client:
    from fleet.cli.terminal.connect import connect

    return connect(config=config)


def _task(client: Client, name: str) -> Task:
    from fleet.operations.shared.branch_names import resolve

    project = str(client.app.loaded.project or "")
    return resolve(client.app.context, name, project=project)
