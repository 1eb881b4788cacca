"""The environments of the programs that Fleet starts: coders, and gates that test their work."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.app.app import ISOLATED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.app.app import App


def coder_env(app: App, task_id: str, run_id: str) -> dict[str, str]:
    """Return a coder's environment: ours, without our secrets and an outer agent's variables."""
    from fleet.adapters.home.bd_program import bd_folder
    from fleet.app.run_identity import server_env
    from fleet.supervisor.attempt.environment import inherited

    folder, server = app.home.task_dir(task_id), server_env(app, run_id)
    passed = app.worlds("").settings.run.env
    store_url = app.loaded.settings.store.url
    needs_store = app.shared and not server
    env = inherited(app.env, store_url="" if needs_store else store_url, passed=passed)
    folders = (bd_folder(app.home.path), Path(sys.executable).parent)
    path = os.pathsep.join([*map(str, folders), env.get("PATH", os.defpath)])
    return env | {
        "PATH": path,
        "FLEET_HOME": str(app.home.path),
        "FLEET_TASK_ID": task_id,
        "FLEET_TASK_DIR": str(folder),
        "FLEET_ARTIFACT_DIR": str(folder / "artifacts"),
        "FLEET_RUN_ID": run_id,
        "FLEET_RUN_TOKEN": app.home.run_token(run_id),
        **server,
        **_commands_env(app, server),
    }


def _commands_env(app: App, server: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which an isolated agent's `fleet` commands reach the server."""
    isolated = app.isolates
    if isolated and not server:
        return {ISOLATED: "1"}
    if not server or not (isolated or app.shared):
        return {}
    url = server["FLEET_RUN_SERVER"].removesuffix("/mcp")
    return {"FLEET_URL": url, "FLEET_TOKEN": server["FLEET_RUN_BEARER"]}


def gate_env(app: App, project: str) -> dict[str, str]:
    """Return the environment of a gate that tests a landing: without keys, and in no run."""
    from fleet.supervisor.attempt.environment import NO_KEYS, for_coder, inherited

    passed = app.worlds(project).settings.run.env
    store_url = app.loaded.settings.store.url
    return for_coder(inherited(app.env, store_url=store_url, passed=passed), NO_KEYS, passed=passed)


def gate_environment(app: App, project: str) -> tuple[str, ...]:
    """Return what a gate's result depends on besides its tree, its command and the set-up."""
    settings = app.worlds(project).settings
    names = sorted({*settings.run.env, *settings.land.environment})
    system = os.uname()
    values = (f"{name}={app.env.get(name, '')}" for name in names)
    return (system.sysname, system.machine, *values)
