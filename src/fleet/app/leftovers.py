"""Find runs, sessions and worktrees that have no task any more. Nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.errors import NotFound
from fleet.domain.findings import BAD, OK, SKIPPED, WARNING, Finding
from fleet.ports import Presence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.app.app import App

FOREVER = 36_500.0  # days: no worktree is this old, so only orphans and cut-off removals are listed
REPAIR = "fleet list --repair"


def orphans(app: App) -> Iterator[Finding]:
    if not (app.home.path / "fleet.db").exists() and not app.shared:
        yield Finding("orphans", SKIPPED, "Nothing has run here yet.", "fleet add, or fleet create")
        return
    findings = [*_runs(app), *_sessions(app), *_workspaces(app)]
    yield from findings
    if not findings:
        yield Finding("orphans", OK, "Every process, worktree and session belongs to a task.")


def _runs(app: App) -> Iterator[Finding]:
    """Report runs recorded as live whose processes are gone, unless a supervisor runs."""
    if app.daemon.running():
        return
    for run in app.store.live_runs(host=app.home.host_id()):
        if app.keepers.look(run.id).presence is Presence.GONE:
            yield Finding("orphans", BAD, f"{run.id} counts as running, but is gone.", REPAIR)


def _sessions(app: App) -> Iterator[Finding]:
    tmux = app.terminals.tmux
    for pane in tmux.panes():
        if not _has(app, pane.run):
            end = tmux.line("kill-session", "-t", f"={pane.session}")
            yield Finding("orphans", BAD, f"The session {pane.session} belongs to no task.", end)


def _workspaces(app: App) -> Iterator[Finding]:
    tidied = app.workspaces.tidy(days=FOREVER, dry_run=True)
    for workspace in tidied.cleared:
        message = f"The removal of a worktree of {workspace.task} was cut off."
        yield Finding("orphans", BAD, message, "fleet gc")
    for orphan in tidied.orphans:
        message = f"The {orphan.what} {orphan.name} belongs to no task."
        if orphan.what == "branch":
            fix = f"Look: git -C {orphan.project} log {orphan.name}"
            yield Finding("orphans", WARNING, message, fix)
        else:
            fix = f"Look into it; then: git worktree remove --force {orphan.name}"
            yield Finding("orphans", BAD, message, fix)


def _has(app: App, run_id: str) -> bool:
    try:
        return bool(app.store.run(run_id))
    except NotFound:
        return False
