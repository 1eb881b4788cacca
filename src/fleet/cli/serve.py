"""`fleet serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.frame import command
from fleet.cli.view import Pairs, Result, Text

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.bootstrap import App
    from fleet.bootstrap.serving import Service

PORT = 3847
START = 30.0


@command(config=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), envvar="PORT", default=PORT, show_default=True
)
@click.option("--name", "names", multiple=True, help="A name by which other machines call it.")
@click.option("--no-run", is_flag=True, help="Only serve; the supervisor is somebody else's.")
@click.option(
    "--max", "most", type=click.IntRange(min=1), envvar="MAX_WORKERS", help="Runs at once."
)
@click.option("--background", is_flag=True, help="Go on without this terminal.")
@click.option("--status", is_flag=True, help="Say whether one runs in the background.")
@click.option("--stop", is_flag=True, help="Stop the one that runs in the background.")
def serve(
    *, host: str, port: int, names: tuple[str, ...], no_run: bool, most: int | None,
    background: bool, status: bool, stop: bool, config: Path | None,
) -> Result | int:  # fmt: skip
    """Serve the operations over HTTP and run the supervisor, until Ctrl-C. Agents go on."""
    from fleet.bootstrap.serving import service_of
    from fleet.cli.connect import connect

    app = connect(config=config).app
    service = service_of(app.home.path)
    if stop:
        text = "Stopped." if service.stop(START) else "None runs in the background."
        return Result("server", {"running": False}, Text(text))
    if status:
        return _status(service)
    words = [f"--host={host}", f"--port={port}", *(f"--name={name}" for name in names)]
    words += ["--no-run"] if no_run else []
    words += [f"--max={most}"] if most else []
    if config is not None:
        words.append(f"--config={config.absolute()}")
    if background:
        return _background(service, words, port)
    return _serve(app, host, port, names, None if no_run else most or 0)


def _serve(app: App, host: str, port: int, names: tuple[str, ...], most: int | None) -> int:
    """`most`: runs at once, 0 for as many as the settings say; None: no supervisor."""
    from dataclasses import replace

    from fleet.cli.foreground import Given, on_signals
    from fleet.cli.inside import Inside
    from fleet.cli.render import say
    from fleet.server.running import Serving

    serving = Serving(app, host=host, port=port, names=names)
    inside = None
    if most is not None:
        config = str(app.config_file.absolute()) if app.config_file else ""
        given = Given(most=most, config=config, cwd=str(app.cwd))
        inside = Inside(lambda: replace(app, listening=True), given, serving.heard, serving.stop)
    on_signals(serving.stop, inside.wake if inside else lambda: None)
    serving.run(say, inside)
    return 0


def _status(service: Service) -> Result:
    found = service.running()
    data: dict[str, Any] = {"running": found is not None, "log": str(service.log)}
    pairs: list[tuple[str, Any]] = [("server", "running" if found else "stopped")]
    if found is not None:
        data |= {"pid": found.pid, "port": found.port, "since": found.started_at}
        pairs += [("pid", found.pid), ("port", found.port)]
    return Result("server", data, Pairs([*pairs, ("log", str(service.log))]))


def _background(service: Service, words: list[str], port: int) -> Result:
    import os
    import sys

    from fleet.bootstrap.gateway import answers
    from fleet.bootstrap.serving import within
    from fleet.domain.errors import BadInput, Refused, Unavailable

    if port == 0:
        raise BadInput("In the background it needs a port of its own.", fix="Give --port.")
    with service.alone():
        if service.running():
            raise Refused("One runs already.", fix="`fleet serve --stop` stops it.")
        argv = [sys.executable, "-m", "fleet", "serve", *words]
        process = service.start(argv, env=os.environ, port=port)
        up = within(START, lambda: answers(port, "/health") or process.poll() is not None)
        if not up or process.poll() is not None:
            service.stop(1.0)
            raise Unavailable(
                f"It did not come up: {' '.join(service.words(4).splitlines())}",
                fix=f"Look at {service.log}.",
            )
    return _status(service)
