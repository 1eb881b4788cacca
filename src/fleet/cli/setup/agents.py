"""`fleet agents`: the declared roles, and whether each could work here now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.completion import complete_agents
from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Cell, Column, Pairs, Result, Table
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleet.app import App
    from fleet.cli.terminal.view import Value
    from fleet.domain.fleet import Agent

NODES_WITHIN = 1.5  # seconds for all nodes together
COLUMNS = (
    Column("AGENT"),
    Column("CODER"),
    Column("PROGRAM", flexible=True, least=12),
    Column("MODEL"),
    Column("NODES", flexible=True, least=12),
    Column("DECLARED", flexible=True, least=12, spare=1),
)
NONE = "No agents are declared. Declare them under `agents:` in fleet.yaml."


@command(config=True)
@click.argument("name", required=False, metavar="[AGENT]", shell_complete=complete_agents)
@click.option("--probe/--no-probe", default=True, help="Ask the nodes whether they are online.")
def agents(*, name: str | None, probe: bool, config: Path | None) -> Result:
    """List the agents that the settings declare; with AGENT, show one in detail.

    An agent is a role: a coder, a model, instructions and limits. The list shows whether the
    coder's program is installed here, and which nodes that serve the model are online. Every
    coder's name is also an agent, with defaults: `fleet coders` lists them. `fleet list` lists the
    agents at work.
    """
    app = connect_here(config=config).app
    fleet = app.loaded.fleet
    wanted = [fleet.agent(name)] if name else list(fleet.agents.values())
    states = _node_states(app, wanted) if probe else {}
    known = [_facts(app, agent, states) for agent in wanted]
    if name:
        return Result("agent", known[0], _one(known[0]))
    return Result("agents", known, Table(COLUMNS, [_row(each) for each in known], empty=NONE))


def _node_states(app: App, agents: list[Agent]) -> dict[str, str]:
    """By node: online, offline or unknown; of those that serve a model of these agents."""
    from fleet.app.compute.nodes import Compute

    if not any(agent.model for agent in agents):
        return {}
    return {seen.node: seen.state for seen in Compute(app).survey(within=NODES_WITHIN)}


def _facts(app: App, agent: Agent, states: Mapping[str, str]) -> dict[str, Any]:
    executable, path = _program(app, agent)
    servings = agent.model.servings if agent.model else ()
    return {
        "name": agent.name,
        "description": agent.description,
        "coder": agent.coder,
        "executable": executable or None,
        "path": path,
        "model": agent.model_name or None,
        "nodes": [
            {"name": s.node.name, "upstream": s.upstream, "status": states.get(s.node.name)}
            for s in servings
        ],
        "permissions": agent.permissions,
        "role": agent.role,
        "priority": agent.priority,
        "tools": agent.tools,
        "declared": _declared(app, agent.name),
    }


def _program(app: App, agent: Agent) -> tuple[str, str | None]:
    """What its coder runs, and where that is on this machine."""
    import shutil

    from fleet.app import make_coder, probe_programs

    if agent.command:
        return agent.command[0], shutil.which(agent.command[0])
    try:
        coder = make_coder(agent.coder, app.loaded.fleet)
    except Refused:  # one of another package that cannot be loaded
        return agent.coder, None
    program = probe_programs([coder], os.environ, ask=False)[agent.coder]
    return program["executable"] or "", program["path"]


def _declared(app: App, name: str) -> str | None:
    """The file and line of its first setting; None for a coder's name that nothing declares."""
    from fleet.config.keys.table import DEFAULT

    origins = app.loaded.origins.items()
    mine = [o for path, o in origins if path.startswith(f"agents.{name}.") and o.layer != DEFAULT]
    first = min(mine, key=lambda origin: origin.place.line, default=None)
    return str(first) if first else None


def _row(known: Mapping[str, Any]) -> list[Value]:
    return [
        known["name"],
        known["coder"],
        _path(known),
        known["model"],
        _nodes(known),
        known["declared"],
    ]


def _path(known: Mapping[str, Any]) -> Value:
    if known["executable"] and not known["path"]:
        return Cell(f"{known['executable']}: not found", "red")
    return known["path"] or None  # ours, which needs no program


def _nodes(known: Mapping[str, Any]) -> Value:
    if not known["nodes"]:
        return None
    states = [node["status"] for node in known["nodes"]]
    text = ", ".join(" ".join(filter(None, (n["name"], n["status"]))) for n in known["nodes"])
    return Cell(text, "green" if "online" in states else "red" if any(states) else "")


def _one(known: Mapping[str, Any]) -> Pairs:
    return Pairs(
        [
            ("agent", known["name"]),
            ("description", known["description"] or None),
            ("coder", known["coder"]),
            ("program", _path(known)),
            ("model", known["model"]),
            ("nodes", _nodes(known)),
            ("permissions", known["permissions"]),
            ("role", known["role"]),
            ("priority", known["priority"]),
            ("tools", ", ".join(known["tools"]) or None),
            (
                "declared",
                known["declared"] or "nowhere; every coder is also an agent with defaults",
            ),
        ]
    )
