"""The nodes: what they have (`discover`), how they are (`nodes`), and loading them (`warmup`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import click

from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.view import ItemStream, Result, Text
from fleet.domain.errors import BadInput, NotFound, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleet.app.compute.nodes import Compute
    from fleet.client import LocalClient
    from fleet.domain.fleet import Fleet, Model, Serving
    from fleet.domain.nodes.inventory import SeenNode, Warmth

NONE = "No nodes are declared. Declare them under `nodes:` in fleet.yaml."
WITHIN = 2.3  # seconds for all nodes together; each is connected to within 2
WATCH_SECONDS = 2.0  # seconds between the looks of `--watch`
TIMEOUT = click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=600),
    default=WITHIN,
    help="Seconds to wait for all nodes together.",
)


@command(config=True)
@click.option("--write", is_flag=True, help="Write what was found to files; see above.")
@click.option("-v", "--verbose", is_flag=True, help="Also show kind, version, latency and address.")
@click.option(
    "--scan",
    is_flag=False,
    flag_value="anywhere",
    default=None,
    metavar="[WHERE]",
    help="Look for other model servers; WHERE is tailscale, mdns, or a network (192.168.1.0/24).",
)
@click.option(
    "--port",
    "ports",
    type=click.IntRange(1, 65535),
    multiple=True,
    help="With --scan: a port to try, instead of the usual ones. Repeatable.",
)
@TIMEOUT
def discover(  # its options
    write: bool,  # noqa: FBT001  # click passes by name
    verbose: bool,  # noqa: FBT001
    scan: str | None,
    ports: tuple[int, ...],
    timeout: float,
    config: Path | None,
) -> Result:
    """List the models of every node.

    A node that does not answer in time, or not like a model server, is shown as offline with the
    reason. Fleet detects the kind of a node (Ollama, vLLM, llama.cpp, LM Studio) if fleet.yaml does
    not give it.

    --write adds the detected kinds to fleet.yaml, changing nothing else in it, and writes all
    results to .subagent-fleet/discovery.json beside it.

    --scan looks for model servers that fleet.yaml does not name: on the machines of your tailnet
    and among those that announce themselves (mDNS), or in the network that you name. It asks
    whether to add them to fleet.yaml; --write adds them without asking.
    """
    from fleet.cli.compute.views import advice, discovered
    from fleet.operations.compute.nodes import node_row

    client = connect_here(config=config)
    if ports and scan is None:
        raise BadInput("--port needs --scan.", fix="fleet discover --scan NETWORK --port PORT")
    if scan is not None:
        from fleet.cli.compute.scan import scan_result

        return scan_result(client.app, scan, ports, write=write)
    nodes = client.compute()
    fleet = nodes.fleet
    seen = nodes.survey(within=timeout)
    data = {"fleet": fleet.name, "nodes": [node_row(fleet, each) for each in seen]}
    notes = advice(fleet, seen, nodes.unsaid, wrote=write)
    if write:
        notes += _write(client, seen, nodes.unsaid, data, nodes.thinking(within=timeout))
    return Result("discovery", data, discovered(fleet, seen, verbose=verbose), notes=notes)


@command(config=True)
@click.option("-w", "--watch", is_flag=True, help="Keep updating the view.")
@TIMEOUT
def nodes(
    watch: bool,  # noqa: FBT001  # click passes by name
    timeout: float,
    config: Path | None,
) -> Result:
    """Show the nodes, their resident models, and where each agent's requests go.

    Breakers and busy slots are shown while the relay runs. This is the output of
    `subagent-fleet status`; `fleet status` ends with it.
    """
    from fleet.cli.compute.views import advice, status_data, status_view

    client = connect_here(config=config)
    fleet = client.loaded.fleet
    if not fleet.nodes:
        return Result("nodes", status_data(fleet, [], None), Text(NONE))
    machines = client.compute()
    if watch and not wants_json():
        _watch(machines, timeout)
    if watch:
        return Result("nodes", _looks(machines, timeout), ItemStream(lambda _: None))
    seen, relay = machines.look_around(within=timeout)
    notes = advice(fleet, seen, machines.unsaid)
    view = status_view(fleet, seen, relay)
    return Result("nodes", status_data(fleet, seen, relay), view, notes=notes)


def _watch(nodes: Compute, timeout: float) -> NoReturn:
    import time

    from fleet.cli.compute.views import status_view
    from fleet.cli.terminal.live import Live

    with Live() as live:
        while True:
            seen, relay = nodes.look_around(within=timeout)
            live.update(status_view(nodes.fleet, seen, relay))
            time.sleep(WATCH_SECONDS)


def _looks(nodes: Compute, timeout: float) -> Iterator[dict[str, Any]]:
    import time

    from fleet.cli.compute.views import status_data

    while True:
        seen, relay = nodes.look_around(within=timeout)
        yield status_data(nodes.fleet, seen, relay)
        time.sleep(WATCH_SECONDS)


@command(config=True)
@click.option("--model", metavar="NAME", help="Only this model, by its name or alias.")
@click.option("--agent", metavar="NAME", help="Only the model of this agent.")
def warmup(model: str | None, agent: str | None, config: Path | None) -> Result:
    """Load the models into their nodes' memory, to stay there, before work begins.

    The nodes load in parallel, each model with the context size that requests will use. A model
    counts as loaded when its node reports it as resident. Exit status 1 if one could not be loaded.
    """
    from fleet.cli.compute.views import warm_view
    from fleet.operations.compute.nodes import warm_row

    nodes = connect_here(config=config).compute()
    rows = _warm(nodes, _wanted(nodes.fleet, model, agent))
    failed = any(row.state == "failed" for row in rows)
    data = [warm_row(row) for row in rows]
    return Result("warmup", data, warm_view(rows, ended=True), exit_status=1 if failed else 0)


def _warm(nodes: Compute, wanted: list[tuple[str, Serving]]) -> list[Warmth]:
    from fleet.cli.compute.views import warm_view
    from fleet.cli.terminal.live import Live

    warming = nodes.warm(wanted)
    if wants_json():
        while not warming.wait(1.0):
            pass
        return warming.rows()
    with Live() as live:
        while not warming.wait(0.2):
            live.update(warm_view(warming.rows(), seconds=live.redraws))
        live.update(warm_view(warming.rows(), seconds=live.redraws))
    return warming.rows()


def _wanted(fleet: Fleet, model: str | None, agent: str | None) -> list[tuple[str, Serving]]:
    if model and agent:
        raise BadInput("--model and --agent cannot be used together.", fix="Leave one of them out.")
    models: list[Model] = fleet.own_models
    if model:
        models = [named_model(fleet, model)]
    elif agent:
        own = fleet.agent(agent).model
        if own is None:
            message = (
                f"The agent '{agent}' uses no model of fleet.yaml, so there is nothing to warm."
            )
            raise NotFound(message, fix="Give it `model:` with a name under `models`.")
        models = [own]
    if not models:
        raise NotFound("fleet.yaml declares no models.", fix="`models:` in fleet.yaml names them.")
    return [(each.name, serving) for each in models for serving in each.servings]


def named_model(fleet: Fleet, name: str) -> Model:
    declared = fleet.model(name)
    if declared is None:
        known = list(dict.fromkeys(n for model in fleet.models.values() for n in model.names))
        fix = nearest(name, known) or f"Models: {', '.join(known) or 'none'}."
        raise NotFound(f"There is no model '{name}'.", fix=fix)
    return declared


def _write(
    client: LocalClient,
    seen: list[SeenNode],
    unsaid: frozenset[str],
    data: dict[str, Any],
    thinking: list[str],
) -> list[str]:
    """What was written, for a person."""
    from fleet.config.commands.set import SettingFiles, apply, parsed
    from fleet.config.files.write import write_whole
    from fleet.config.keys import table
    from fleet.config.loader import display_path
    from fleet.domain.record_json import dumps

    app = client.app
    file, origins, nodes = app.loaded.project_file, app.loaded.origins, app.loaded.fleet.nodes
    kinds = [
        f"nodes.{each.node}.kind={each.inventory.kind}"
        for each in seen
        if each.inventory is not None
        and each.node in unsaid
        and each.inventory.kind != nodes[each.node].kind
        and origins[f"nodes.{each.node}.endpoint"].layer == table.PROJECT  # not one's own node
    ]
    kinds += [
        f"models.{name}.thinking=true"
        for name in thinking
        if any(
            path.startswith(f"models.{name}.") and origin.layer == table.PROJECT
            for path, origin in origins.items()
        )
    ]
    notes = []
    if kinds and file is not None:
        context = SettingFiles(app.cwd, app.home.path, app.env)
        apply([parsed(k) for k in kinds], file=file, layer=table.PROJECT, context=context)
        notes.append(f"Written to {display_path(file, app.cwd)}: {', '.join(kinds)}.")
    path = (file.parent if file is not None else app.cwd) / ".subagent-fleet" / "discovery.json"
    write_whole(path, f"{dumps(data)}\n".encode())
    return [*notes, f"Written to {display_path(path, app.cwd)}: all results."]
