"""A run's identity in its team, and the token by which its coder uses this home's server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.adapters.home.home import SERVING
from fleet.domain.access import Actor, Role
from fleet.domain.errors import FleetError
from fleet.domain.fleet import CODERS

if TYPE_CHECKING:
    from fleet.app.app import App

LASTS = 30 * 86400.0  # seconds; the token ends with its run, which may be a long one


def actor_of(app: App, run_id: str) -> Actor:
    """Return a run as an actor, with the task's team, and the task's role or else its agent's."""
    task = app.store.task(run_id.rpartition(".")[0])
    agent = app.store.run(run_id).choice.agent
    role = Role(task.role) if task.role else _role(app, agent, task.project)
    return Actor(run_id, role, task.team, run_id)


def _role(app: App, agent: str, project: str) -> Role:
    if agent in CODERS:
        return Role.WORKER
    try:
        declared = app.worlds(project).fleet.agents.get(agent)
    except FleetError:  # with broken settings a run gets the lowest role
        return Role.WORKER
    return Role(declared.role) if declared else Role.WORKER


def server_env(app: App, run_id: str) -> dict[str, str]:
    """Return the server's address and a token for the run; empty when no server runs."""
    if not (app.home.path / SERVING).exists():
        return {}
    from fleet.app.server_process import serving_at
    from fleet.app.token_keys import own_token

    url = serving_at(app.home.path)
    if not url:
        return {}
    token = own_token(app.home.path, actor_of(app, run_id), seconds=LASTS)
    return {"FLEET_RUN_SERVER": f"{url}/mcp", "FLEET_RUN_BEARER": token}
