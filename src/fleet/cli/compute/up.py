"""`fleet up` and `fleet down`: all that a fleet needs, at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.render import say
from fleet.cli.terminal.view import Column, Result, Stack, Table, Text
from fleet.domain.errors import NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleet.app.compute.gateway import Services
    from fleet.app.compute.nodes import Compute
    from fleet.client import LocalClient
    from fleet.domain.fleet import Fleet
    from fleet.domain.nodes.inventory import Warmth

WARM_SECONDS = 10.0  # seconds that `up` waits for models; a large one may take minutes
LATE = {"waiting", "loading"}


@command(config=True)
@click.option("--warm/--no-warm", default=True, help="Load the models into their nodes' memory.")
def up(
    warm: bool,  # noqa: FBT001  # click passes by name
    config: Path | None,
) -> Result:
    """Start the relay and the gateway, warm the models, start the supervisor.

    The nodes are asked first. LiteLLM is then installed if it is missing, unless no node answers.
    Processes that already run keep running and reload their settings. A model that takes longer
    than 10 seconds goes on loading in the background. Exit status 1 if a model could not be
    loaded; the rest still starts.
    """
    from fleet.app.compute.generate import ENV
    from fleet.cli.compute.gateway import install_litellm, start_services

    client = connect_here(config=config)
    nodes, services = client.compute(), _services(client)
    fleet = nodes.fleet
    missing = not services.environment.version()
    silent = _ask_nodes(nodes, installing=missing)
    if missing:
        install_litellm(services.home)
    start_services(services)
    supervisor = _supervised(config)
    say(supervisor["said"])
    rows = _warmed(nodes, silent) if warm else []
    failed = [row for row in rows if row.state == "failed"]
    late = [row for row in rows if row.state in LATE]
    if late:
        services.warm_later(dict.fromkeys(row.model for row in late), config)
    data = {
        "ready": not failed and not late,
        "url": services.url(),
        "agents": _routes(fleet, rows),
        "models": [
            {"model": r.model, "node": r.node, "state": r.state, "why": r.why} for r in rows
        ],
        "supervisor": supervisor["pid"],
        "generated": (services.base / ENV).exists(),
    }
    return Result("up", data, _screen(data, failed, late), exit_status=1 if failed else 0)


@command(config=True)
@click.option("--agents", is_flag=True, help="Also end the agents; their tasks become open again.")
def down(
    agents: bool,  # noqa: FBT001  # click passes by name
    config: Path | None,
) -> Result:
    """Stop the supervisor, the gateway and the relay. Agents keep running, unless --agents.

    Requests that are being answered finish first.
    """
    from fleet.cli.compute.gateway import not_stopped, stop_services

    supervisor, data = _supervisor_stopped(agents=agents, config=config)
    client = connect_here(config=config)
    services = _services(client) if client.loaded.project_file else None
    ended = stop_services(services) if services else []
    gateway = "The gateway is not running."
    if ended:
        gateway = f"Stopped the {' and the '.join(ended)}."
    elif services and services.gateway.running():
        gateway = not_stopped(services)
    return Result("down", {**data, "stopped": ended}, Text(f"{supervisor}\n{gateway}"))


def _supervisor_stopped(*, agents: bool, config: Path | None) -> tuple[str, dict[str, object]]:
    """Stop the supervisor; one inside the server keeps running, unless its agents are to be ended."""
    from fleet.cli.supervisor.run import stop

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

    loaded = client.loaded
    if loaded.project_file is None:
        raise NotFound("There is no fleet.yaml here.", fix="`fleet init` writes one.")
    file = loaded.project_file
    return Services(loaded.fleet, client.home, file.parent, file)


def _supervised(config: Path | None) -> dict[str, Any]:
    from fleet.cli.supervisor.run import start

    context = click.get_current_context()
    done: Result = context.invoke(start, coder="", most=None, once=False, config=config)
    assert isinstance(done.view, Text)
    return {"pid": done.data["pid"], "said": done.view.text}


def _ask_nodes(nodes: Compute, *, installing: bool) -> dict[str, str]:
    """Report silent nodes; return why, by name. Before an installation, raise if all are silent."""
    from fleet.cli.compute.nodes import WITHIN
    from fleet.cli.terminal.progress import ProgressLine

    with ProgressLine("Asking the nodes") as progress:
        seen = nodes.survey(within=WITHIN)
        down = [f"{each.node} does not answer: {each.why}." for each in seen if each.up is False]
        if installing and len(down) == len(seen):
            fix = "Start one, or correct its endpoint in fleet.yaml. `fleet discover` asks again."
            raise Unavailable("\n".join(down), fix=fix)
        for text in down:
            progress.say(text, "yellow")
    return {each.node: each.why for each in seen if each.up is False}


def _warmed(nodes: Compute, silent: Mapping[str, str]) -> list[Warmth]:
    """Warm the models and report each as it is done; those on silent nodes count as failed."""
    from fleet.cli.terminal.progress import ProgressLine
    from fleet.domain.nodes.inventory import Warmth

    models = nodes.fleet.own_models
    servings = [(model.name, serving) for model in models for serving in model.servings]
    wanted = [each for each in servings if each[1].node.name not in silent]
    failed = [
        Warmth(model, s.node.name, s.upstream, s.context, "failed", silent[s.node.name])
        for model, s in servings
        if s.node.name in silent
    ]
    warming = nodes.warm(wanted)
    printed: set[int] = set()
    over, until = False, time.monotonic() + WARM_SECONDS
    with ProgressLine("Loading the models", of=len(wanted)) as progress:
        while not over and time.monotonic() < until:
            over = warming.wait(0.2)
            for number, row in enumerate(warming.rows()):
                if row.state in {"ok", "failed"} and number not in printed:
                    printed.add(number)
                    progress.at("", done=len(printed))
                    progress.say(_line(row), "" if row.state == "ok" else "yellow")
        for row in failed:
            progress.say(_line(row), "yellow")
    return [*warming.rows(), *failed]


def _line(row: Warmth) -> str:
    if row.state in LATE:
        return f"{row.model} is still loading on {row.node}; it goes on in the background."
    if row.state == "ok":
        return f"{row.model} is resident on {row.node} ({row.seconds:.1f} s)."
    return f"{row.model} could not be loaded on {row.node}: {row.why}"


def _routes(fleet: Fleet, rows: list[Warmth]) -> list[dict[str, Any]]:
    """For each agent, the node that its requests go to first."""
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


def _screen(data: dict[str, Any], failed: list[Warmth], late: list[Warmth]) -> Stack:
    lines = ["Your fleet is ready." if data["ready"] else "Your fleet is up, but not all of it."]
    lines += [f"{route['agent'].capitalize()} goes to {route['to']}." for route in data["agents"]]
    lines += [_line(row) for row in (*failed, *late)]
    lines.append(f"Claude Code can now connect to LiteLLM at {data['url']}.")
    served = [route for route in data["agents"] if route["node"]]
    keys = ("agent", "node", "upstream", "alias")
    columns = [Column(key, flexible=key in {"upstream", "alias"}) for key in keys]
    after = "fleet doctor      tests every model once\nfleet trace -f    shows each request"
    if not data["generated"]:
        after = f"fleet generate    writes the configuration files of your coders\n{after}"
    if late:
        after += "\nfleet warmup      shows the models that are still loading"
    table = Table(columns, [[route[key] for key in keys] for route in served])
    return Stack([("", Text("\n".join(lines))), ("", table), ("Next:", Text(after))])
