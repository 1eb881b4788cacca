"""`fleet gateway`: LiteLLM and the relay behind it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.frame import group
from fleet.cli.terminal.render import say
from fleet.cli.terminal.view import Cell, Column, ItemStream, Result, Table, Text
from fleet.domain.errors import NotFound

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.app.compute.gateway import ServiceAnswer, Services

STALE = "LiteLLM and the relay run with another fleet.yaml. Reload them: fleet gateway start"

ANOTHER_KEY = (
    "LiteLLM was started with another key than this shell has, and refuses yours. "
    "Start it with yours: fleet gateway start"
)


@group()
def gateway() -> None:
    """Start and stop LiteLLM, which serves every model's name, and the relay that picks nodes."""


@gateway.command()
def install() -> Result:
    """Install LiteLLM into an environment of its own."""
    from fleet.app.compute.gateway import environment
    from fleet.config.places import home

    version = install_litellm(home(os.environ))
    directory = environment(home(os.environ))
    data = {"version": version, "path": str(directory.where)}
    text = f"LiteLLM {version} is installed in {directory.where}.\nNext: fleet gateway start"
    return Result("gateway", data, Text(text))


def install_litellm(home: Path) -> str:
    """Install LiteLLM and return its version; say how large it is, and show the progress."""
    from fleet.app.compute.gateway import environment
    from fleet.cli.terminal.progress import ProgressLine

    directory = environment(home)
    wanted = directory.wanted
    if directory.own:
        say("FLEET_GATEWAY_PYTHON names a LiteLLM of your own; nothing is installed.")
        return directory.checked()
    if directory.version() == wanted:
        return wanted
    say(
        f"LiteLLM {wanted}, which is the gateway, is not installed yet: "
        f"{directory.size}, once, in {directory.where}."
    )
    with ProgressLine(
        f"Installing LiteLLM {wanted}", of=directory.packages, announced=True
    ) as progress:
        return directory.install(lambda what, done: progress.at(what, done=done))


def start_services(services: Services) -> list[ServiceAnswer]:
    """Start LiteLLM and the relay; say what is being started, and since when."""
    from fleet.cli.terminal.progress import ProgressLine

    with ProgressLine("Starting the gateway") as progress:
        return services.start(progress.say)


def stop_services(services: Services) -> list[str]:
    """Stop LiteLLM and the relay, after the requests that they are answering."""
    from fleet.cli.terminal.progress import ProgressLine

    with ProgressLine("Stopping the gateway, after the requests that it answers"):
        return services.stop()


@gateway.command(config=True)
def start(*, config: Path | None) -> Result:
    """Start LiteLLM and the relay, and wait until they answer. Running ones are reloaded."""
    services = _services(config)
    return _status(services, start_services(services))


@gateway.command(config=True)
def stop(*, config: Path | None) -> Result:
    """Stop LiteLLM and the relay, after the requests that they are answering."""
    services = _services(config)
    ended = stop_services(services)
    text = f"Stopped: {', '.join(ended)}." if ended else not_stopped(services)
    return Result("gateway", {"stopped": ended}, Text(text))


def not_stopped(services: Services) -> str:
    """Why `stop_services` stopped nothing."""
    others = ", ".join(map(str, services.others()))
    if others and services.gateway.running():
        return f"The gateway keeps running: it also serves {others}."
    return "Neither LiteLLM nor the relay is running."


@gateway.command(config=True)
def status(*, config: Path | None) -> Result:
    """Show whether LiteLLM and the relay run and answer."""
    services = _services(config)
    return _status(services, services.look())


@gateway.command(config=True)
@click.option("--relay", is_flag=True, help="Show the relay's output instead.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    help="Show this many of the last lines.",
)
@click.option("-f", "--follow", is_flag=True, help="Follow new lines until Ctrl-C.")
def logs(*, relay: bool, lines: int, follow: bool, config: Path | None) -> Result:
    """Show the gateway's output."""
    from fleet.cli.terminal.tail import follow as following
    from fleet.cli.terminal.tail import last_lines

    services = _services(config)
    log = (services.relay if relay else services.gateway).log
    if not log.exists():
        raise NotFound("The gateway has not been started yet.", fix="fleet gateway start")
    if follow:
        return Result("lines", following(lambda: log, lines, lambda: True), ItemStream(str))
    text = last_lines(log, lines).decode("utf-8", "replace")
    return Result("lines", text.splitlines(), Text(text.rstrip("\n")))


def _services(config: Path | None) -> Services:
    from fleet.app.compute.gateway import Services
    from fleet.cli.setup.config import load_and_warn
    from fleet.config.places import home

    loaded = load_and_warn(config)
    if loaded.project_file is None:
        raise NotFound("There is no fleet.yaml here.", fix="`fleet init` writes one.")
    file = loaded.project_file
    return Services(loaded.fleet, home(os.environ), file.parent, file)


def _status(services: Services, answers: list[ServiceAnswer]) -> Result:
    rows = [[each.name, _state(each), each.port, _who(each), str(each.log)] for each in answers]
    columns = ("what", "state", Column("port", right=True), "process", Column("log", flexible=True))
    data = {
        "url": services.url(),
        "version": services.environment.version() or None,
        "services": [_data(each) for each in answers],
        "stale": services.stale(),
    }
    notes = [STALE] if data["stale"] else []
    if services.has_another_key():
        notes.append(ANOTHER_KEY)
    return Result("gateway", data, Table(columns, rows), notes=notes)


def _state(each: ServiceAnswer) -> Cell:
    if each.answers:
        return Cell("ready", "green") if each.record else Cell("not ours", "yellow")
    return Cell("not answering", "red") if each.record else Cell("stopped", "dim")


def _who(each: ServiceAnswer) -> str | None:
    if each.record is None:
        return None
    version = f", LiteLLM {each.record.version}" if each.record.version else ""
    count = each.record.restarts
    restarts = f", {count} restart{'s' if count > 1 else ''}" if count else ""
    return f"pid {each.record.pid}{version}{restarts}"


def _data(each: ServiceAnswer) -> dict[str, Any]:
    record = each.record
    return {
        "name": each.name,
        "running": record is not None,
        "answers": each.answers,
        "port": each.port,
        "pid": record.pid if record else None,
        "since": record.started_at if record else None,
        "restarts": record.restarts if record else 0,
        "log": str(each.log),
    }
