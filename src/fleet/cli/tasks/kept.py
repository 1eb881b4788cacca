"""`fleet kept` and `fleet gc`: work saved before its worktree was removed, and the removing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.completion import complete_kept
from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command, listing_group
from fleet.cli.terminal.view import Column, Result, Table, Text

if TYPE_CHECKING:
    from fleet.app.workspaces.manage import Cleared, KeptWork, Tidied, Workspaces

COLUMNS = (
    Column("ID"),
    Column("WHEN"),
    Column("BRANCH", flexible=True),
    Column("WHAT", flexible=True),
)


@listing_group
def kept() -> None:
    """List, restore or drop work that was saved before its worktree was removed.

    It is under `refs/fleet/kept/` in the project's repository: commits, uncommitted changes and
    untracked files. Files that git ignores are not kept.
    """


@kept.command("list", config=True)
def kept_list(config: Path | None) -> Result:
    """List the kept work of this project's repository."""
    from fleet.cli.terminal.human import moment

    items = _workspaces(config).kept()
    rows = [(k.id, moment(k.at), k.branch, _what(k)) for k in items]
    return Result("kept", items, Table(COLUMNS, rows, empty="Nothing is kept in this repository."))


@kept.command("restore", config=True)
@click.argument("name", metavar="ID", shell_complete=complete_kept)
@click.option("--branch", default="", help="The name of the new branch.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Make a worktree there, with the uncommitted changes uncommitted.",
)
def kept_restore(name: str, branch: str, into: Path | None, config: Path | None) -> Result:
    """Restore kept work to a new branch; it also stays kept."""
    where = into.expanduser().absolute() if into else None
    done = _workspaces(config).restore(name, branch=branch, into=where)
    folder = f" in {done.path}" if done.path else ""
    return Result("restored", done, Text(f"{done.kept} is on the branch {done.branch}{folder}."))


@kept.command("drop", config=True)
@click.argument("name", metavar="ID", shell_complete=complete_kept)
def kept_drop(name: str, config: Path | None) -> Result:
    """Delete kept work for good."""
    done = _workspaces(config).drop(name)
    data = {"id": done.id, "commit": done.commit}
    words = (
        f"Dropped {done.id}. Until git prunes it, `git branch NAME {done.commit[:12]}` restores it."
    )
    return Result("dropped", data, Text(words))


@command(config=True)
@click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing.")
@click.option(
    "--days",
    type=click.FloatRange(min=0),
    default=7,
    help="Only tasks that ended, and pooled worktrees unused, for this many days.",
)
@click.option(
    "--all", "also", is_flag=True, help="Also remove what the settings retention.* say is old."
)
def gc(dry_run: bool, days: float, also: bool, config: Path | None) -> Result:  # noqa: FBT001  # click
    """Remove the worktrees of ended tasks; work that exists only there is kept first.

    It also finishes interrupted removals, removes worktrees from the pool that are beyond the
    setting `workspace.pool` or were not used for --days, and lists worktrees and branches that
    belong to no task, without removing them.
    """
    from fleet.cli.terminal.progress import ProgressLine

    with ProgressLine("Looking for worktrees to remove") as progress:
        done = _workspaces(config).tidy(
            days=days, dry_run=dry_run,
            note=lambda done, of: progress.of("Removing worktrees", done, of),
        )  # fmt: skip
    lines = _lines(done)
    if also:
        done, more = _forget_old(config, done)
        lines += more
    if not done.cleared and done.younger:
        many = "worktrees" if done.younger > 1 else "worktree"
        lines.append(
            f"{done.younger} finished {many}, none older than {days:g} days (--days 0 removes all)."
        )
    return Result("gc", done, Text("\n".join(lines) or "There is nothing to remove."))


def _lines(done: Tidied) -> list[str]:
    verb = "Would remove" if done.dry_run else "Removed"
    lines = []
    for one in done.cleared:
        lines += [f"{verb} {path} ({one.task})." for path in one.paths]
        lines += _aside(one)
    for path in done.pooled:
        kind = "a finished set-up" if "/set-ups/" in path else "which waited in the pool"
        lines.append(f"{verb} {path}, {kind}.")
    for orphan in done.orphans:
        where = f" in {orphan.project}" if orphan.project else ""
        lines.append(f"The {orphan.what} {orphan.name}{where} belongs to no task; it stays.")
    return lines


def _aside(one: Cleared) -> list[str]:
    lines = [f"Kept its work: {name} (fleet kept restore {name})." for name in one.kept]
    lines += [
        f"Deleted the branch {name}: its commits are also elsewhere, merged or pushed."
        for name in one.branches
    ]
    return [*lines, *(f"{one.task}: {words}" for words in one.said)]


def _what(one: KeptWork) -> str:
    what = "uncommitted work" if one.uncommitted else "commits"
    return " ".join((what, *one.notes))


def _forget_old(config: Path | None, done: Tidied) -> tuple[Tidied, list[str]]:
    """Delete what is old by the settings `retention.*`."""
    from dataclasses import replace

    client = connect_here(config=config)
    removed = client.remove_old_transcripts(dry_run=done.dry_run)
    old, kept = client.forget_old(dry_run=done.dry_run)
    sizes = {
        f"the transcripts of {_count(removed.runs, 'run')} ({removed.bytes / 1e6:,.1f} MB)": removed.runs,
        f"{_count(old.tasks, 'task')} from the store": old.tasks,
        f"the events before number {old.events:,}": old.events,
        f"kept work: {', '.join(kept)}": kept,
    }
    verb = "Would remove" if done.dry_run else "Removed"
    lines = [f"{verb} {what}." for what, some in sizes.items() if some]
    done = replace(
        done, transcripts=removed.runs, forgotten=old.tasks, events=old.events, kept=kept
    )
    return done, lines


def _count(names: tuple[str, ...], noun: str) -> str:
    return f"1 {noun}" if len(names) == 1 else f"{len(names):,} {noun}s"


def _workspaces(config: Path | None) -> Workspaces:
    return connect_here(config=config).workspaces
