"""What is done to agents on this host beyond an operation: looked at, ended, cleared away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fleet.domain.errors import Refused
from fleet.operations.agents import AgentRow, ListAgents
from fleet.operations.showing import ShowTask
from fleet.operations.tasks import CancelTask

if TYPE_CHECKING:
    from fleet.client import Client
    from fleet.operations.showing import TaskDetail

BUSY = {
    "working": "is busy with its turn",
    "permission": "asks for a permission on its screen",
    "exited": "has exited",
    "starting": "is still starting",
}
FOREVER = 36500.0  # days: only what nobody owns is looked for
ENDED = {"done", "failed", "cancelled"}


class Killed(NamedTuple):
    task: str
    branch: str
    status: str
    path: str
    removed: bool
    kept: str


def sight(client: Client, found: TaskDetail) -> dict[str, Any]:
    """What an agent's newest run is doing, by which evidence."""
    run = found.runs[-1] if found.runs else None
    if run is None or run.ending:
        how = f"its run ended: {run.ending}" if run else "it has no run yet"
        return {"run": run.id if run else "", "doing": found.task.status, "by": how}
    rows = client.call(ListAgents(found.task.project, all=True))
    mine = [r for r in rows if r.task == found.task.id]
    seen = client.observed(mine)
    return {"run": run.id, "doing": seen[0]["doing"], "by": seen[0]["by"]} if seen else {}


def check_ease(client: Client, name: str, *, queue: bool) -> None:
    """Raise `Refused` with the reason when an agent in a terminal cannot be told something now."""
    found = client.call(ShowTask(name))
    if found.spec.mode != "terminal" or found.task.state != "running":
        return
    doing = sight(client, found).get("doing", "")
    why = BUSY.get(doing)
    if why is None or (queue and doing in {"working", "starting"}):
        return
    fix = {
        "working": f"fleet prompt {name} --queue …, or fleet attach {name}",
        "permission": f"Answer it there: fleet attach {name}",
    }.get(doing, f"`fleet explain {name}` says more.")
    raise Refused(f"{found.task.id} {why}.", fix=fix, code=doing)


def kill(client: Client, agent: AgentRow, *, delete_branch: bool) -> Killed:
    """Its processes first; then what is not merged or pushed is kept; then its worktree goes."""
    if agent.status not in ENDED:
        client.call(CancelTask(agent.task, "Killed."))
    found = client.call(ShowTask(agent.task))
    client.app.close_terminals(agent.task)
    removed = client.app.remove_workspaces(agent.task, delete_branch=delete_branch)
    kept = ", ".join(removed.kept)
    return Killed(
        agent.task, agent.branch, found.task.status, agent.path, bool(removed.paths), kept
    )


def reconcile(client: Client) -> tuple[str, ...]:
    """Settle what has ended unseen, and say what no longer fits together; no file is removed."""
    client.reconcile()
    there = client.app.workspaces.tidy(days=FOREVER, dry_run=True).orphans
    return tuple(
        f"No task has the {one.what} {one.name}; it stays. `fleet gc --dry-run` lists what could go."
        for one in there
    )
