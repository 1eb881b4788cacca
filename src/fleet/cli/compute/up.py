"""`fleet up` and `fleet down`: all that a fleet needs, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Column, Result, Stack, Table, Text

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.app.compute.gateway import Services
    from fleet.app.compute.nodes import Compute
    from fleet.client import LocalClient
    from fleet.domain.fleet import Fleet
    from fleet.domain.nodes.inventory import Warmth


@command(config=True)
@click.option("--warm/--no-warm", default=True, help="Load the models into their nodes' memory.")
def up(
    warm: bool,  # noqa: FBT001  # click passes by name
    config: Path | None,
) -> Result:
    """Start the relay and the gateway, warm the models, start the supervisor.

    LiteLLM is installed first if it is missing. Processes that already run keep running and reload
    their settings. Exit status 1 if a model could not be loaded; the rest still starts.
    """
    from fleet.cli.terminal.connect import connect_here
    from fleet.cli.terminal.render import say

    client = connect_here(config=config)
    nodes, services = client.compute(), _services(client)
    fleet = nodes.fleet
    if not services.environment.version():
        say("LiteLLM, which is the gateway, is not installed yet.")
        services.environment.install(say)
    services.start(say)
    rows = _warmed(nodes) if warm else []
    supervisor = _supervised(config)
    say(supervisor["said"])
    failed = [row for row in rows if row.state == "failed"]
    data = {
        "ready": not failed,
        "url": services.url(),
        "agents": _routes(fleet, rows),
        "models": [
            {"model": r.model, "node": r.node, "state": r.state, "why": r.why} for r in rows
        ],
        "supervisor": supervisor["pid"],
    }
    return Result("up", data, _screen(data, failed), exit_status=1 if failed else 0)


@command(config=True)
@click.option("--agents", is_flag=True, help="Also end the agents; their tasks become open again.")
def down(
    agents: bool,  # noqa: FBT001  # click passes by name
    config: Path | None,
) -> Result:
    """Stop the supervisor, the gateway and the relay. Agents keep running, unless --agents.

    Requests that are being answered finish first.
    """
    from fleet.cli.terminal.connect import connect_here

    supervisor, data = _supervisor_stopped(agents=agents, config=config)
    client = connect_here(config=config)
    ended = _services(client).stop() if client.loaded.project_file else []
    gateway = f"Stopped the {' and the '.join(ended)}." if ended else "The gateway is not running."
    return Result("down", {**data, "stopped": ended}, Text(f"{supervisor}\n{gateway}"))


def _supervisor_stopped(*, agents: bool, config: Path | None) -> tuple[str, dict[str, object]]:
    """One that is inside the server goes on with it, unless its agents are to be ended."""
    from fleet.cli.supervisor.run import stop
    from fleet.domain.errors import Refused

    try:
        stopped: Result = click.get_current_context().invoke(stop, agents=agents, config=config)
    except Refused as error:
        if error.code != "inside_server" or agents:
            raise
        return f"{error.message} It keeps running: `fleet serve --stop` stops it.", {
            "pid": None,
            "ended": [],
            "going": [],
        }
    assert isinstance(stopped.view, Text)
    return stopped.view.text, dict(stopped.data)


def _services(client: LocalClient) -> Services:
    from fleet.app.compute.gateway import Services
    from fleet.domain.errors import NotFound

    loaded = client.loaded
    if loaded.project_file is None:
        raise NotFound("There is no fleet.yaml here.", fix="`fleet init` writes one.")
    return Services(loaded.fleet, client.home, loaded.project_file.parent)


def _supervised(config: Path | None) -> dict[str, Any]:
    from fleet.cli.supervisor.run import start

    context = click.get_current_context()
    done: Result = context.invoke(start, coder="", most=None, once=False, config=config)
    assert isinstance(done.view, Text)
    return {"pid": done.data["pid"], "said": done.view.text}


def _warmed(nodes: Compute) -> list[Warmth]:
    """Each is told of as it is done."""
    from fleet.cli.terminal.render import say

    models = dict.fromkeys(nodes.fleet.models.values())
    wanted = [(model.name, serving) for model in models for serving in model.servings]
    warming = nodes.warm(wanted)
    printed: set[int] = set()
    over = False
    while not over:
        over = warming.wait(0.2)
        for number, row in enumerate(warming.rows()):
            if row.state in {"ok", "failed"} and number not in printed:
                printed.add(number)
                say(_line(row), "" if row.state == "ok" else "yellow")
    return warming.rows()


def _line(row: Warmth) -> str:
    if row.state == "ok":
        return f"{row.model} is resident on {row.node} ({row.seconds:.1f} s)."
    return f"{row.model} could not be loaded on {row.node}: {row.why}"


def _routes(fleet: Fleet, rows: list[Warmth]) -> list[dict[str, Any]]:
    """Where the requests of each agent go first."""
    from fleet.domain.fleet import alias_of
    from fleet.domain.nodes.model_sizes import spoken_of

    agents = fleet.agents.values()
    memory = {row.model: row.resident.memory for row in rows if row.resident}
    words = spoken_of([agent.model for agent in agents if agent.model], memory)
    routes: list[dict[str, Any]] = []
    for agent in agents:
        route: dict[str, Any] = {"agent": agent.name, "coder": agent.coder}
        if agent.model is None:
            own = agent.model_name or "the model"
            routes.append(route | {"node": None, "to": f"{own} of {agent.coder} itself"})
            continue
        first = agent.model.servings[0]
        route |= {"model": agent.model.name, "alias": alias_of(agent), "node": first.node.name}
        routes.append(route | {"upstream": first.upstream, "to": words[agent.model.name]})
    return routes


def _screen(data: dict[str, Any], failed: list[Warmth]) -> Stack:
    lines = ["Your fleet is ready." if not failed else "Your fleet is up, but not all of it."]
    lines += [f"{route['agent'].capitalize()} goes to {route['to']}." for route in data["agents"]]
    lines += [_line(row) for row in failed]
    lines.append(f"Claude Code can now connect to LiteLLM at {data['url']}.")
    served = [route for route in data["agents"] if route["node"]]
    keys = ("agent", "node", "upstream", "alias")
    columns = [Column(key, flexible=key in {"upstream", "alias"}) for key in keys]
    after = "fleet generate    writes the configuration files of your coders\n"
    after += "fleet doctor      tests every model once\nfleet trace -f    shows each request"
    table = Table(columns, [[route[key] for key in keys] for route in served])
    return Stack([("", Text("\n".join(lines))), ("", table), ("Next:", Text(after))])
