"""Which agents `fleet kill` means, and what it did to them."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.cli.tasks.bulk import is_like, is_pattern, some
from fleet.cli.terminal import render
from fleet.domain.errors import BadInput, NotFound, Refused
from fleet.operations.shared.names import MAX_ROWS
from fleet.operations.tasks.at_work import AgentRow, ListAgents
from fleet.operations.tasks.show import ShowTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.cli.agents.calls import Killed
    from fleet.client import Client


def matches(client: Client, pattern: str | None, batch: str | None) -> list[AgentRow]:
    """The agents of this name, of a pattern with `*`, or of a batch; raise `NotFound` when there is none.

    A pattern means what `fleet list` shows: no task of the queue that waits for its review or answer.
    """
    if (pattern is None) == (batch is None):
        wrong = (
            "A name and --batch cannot be used together." if pattern else "Name the agents to end."
        )
        raise BadInput(wrong, fix="fleet kill NAME, or fleet kill --batch TASK")
    wild = pattern is not None and is_pattern(pattern)
    rows = client.call(ListAgents(client.project_or_cwd, all=not wild, limit=MAX_ROWS))
    present = [r for r in rows if r.ended_at is None or (r.path and Path(r.path).exists())]
    if batch is not None:
        agents = [r for r in present if r.batch in {batch, f"t-{batch}"}]
    elif wild:
        agents = [r for r in rows if is_like(str(pattern), r.task, r.branch)]
    else:
        agents = _named(client, present, str(pattern))
    if not agents:
        raise NotFound(
            f"There is no agent '{batch if pattern is None else pattern}' here.",
            fix="`fleet list --all` shows them.",
        )
    return agents


def _named(client: Client, present: list[AgentRow], name: str) -> list[AgentRow]:
    """The agents of this name; if there are none, the task that other commands find by this name."""
    if agents := [r for r in present if is_like(name, r.task, r.branch)]:
        return agents
    with suppress(NotFound):
        meant = client.call(ShowTask(name)).task.id
        return [r for r in present if r.task == meant]
    return []


def confirm(agents: Sequence[AgentRow], *, force: bool) -> None:
    """List several agents and ask before they are killed; without a terminal, do not ask."""
    if force or len(agents) == 1 or not sys.stdin.isatty():
        return
    names = some([f"{r.branch or r.task} ({r.task})" for r in agents])
    if not render.confirm(f"End {len(agents)} agents: {names}?", otherwise="--force"):
        raise Refused("No agent was ended.", fix="Use --force to skip the question.")


def kill_summary(ended: Sequence[Killed]) -> str:
    lines = []
    for one in ended:
        name = one.branch or one.task
        stays = f"{one.path} stays." if one.path and Path(one.path).exists() else ""
        what = f"Removed {one.path}." if one.removed else stays
        kept = f" Kept what was not merged: {one.kept} (fleet kept restore)." if one.kept else ""
        notes = f" {one.said}" if one.said else ""
        failed = f" Its worktree could not be removed: {one.error}" if one.error else ""
        lines.append(f"{name} ({one.task}) is {one.status}. {what}{kept}{notes}{failed}".strip())
    return "\n".join(lines)
