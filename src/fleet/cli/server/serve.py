"""`fleet serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.render import say
from fleet.cli.terminal.view import Pairs, Result, Text
from fleet.domain.errors import BadInput, Refused, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.app import App
    from fleet.app.server_process import Service

PORT = 3847
START = 30.0
SUPERVISES = 5.0  # seconds to wait for the supervisor inside


@command(config=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    envvar="PORT",
    default=PORT,
    show_default=True,
    help="The port to listen on; 0 takes a free one.",
)
@click.option(
    "--name", "names", multiple=True, help="A host name by which other machines reach the server."
)
@click.option("--no-run", is_flag=True, help="Do not run a supervisor.")
@click.option(
    "--max",
    "most",
    type=click.IntRange(min=1),
    envvar="MAX_WORKERS",
    help="The maximum number of runs at once.",
)
@click.option("--background", is_flag=True, help="Run in the background.")
@click.option("--status", is_flag=True, help="Show whether a server is running.")
@click.option("--stop", is_flag=True, help="Stop the server in the background.")
def serve(
    *, host: str, port: int, names: tuple[str, ...], no_run: bool, most: int | None,
    background: bool, status: bool, stop: bool, config: Path | None,
) -> Result | int:  # fmt: skip
    """Serve Fleet over HTTP and run the supervisor, until Ctrl-C. Agents keep running."""
    from fleet.app.server_process import service_of
    from fleet.app.store.open import check_backend

    if [background, status, stop].count(True) > 1:
        raise BadInput(
            "--background, --status and --stop cannot be used together.", fix="Give one."
        )
    app = connect_here(config=config).app
    service = service_of(app.home.path)
    if stop:
        return _stop(app, service)
    if status:
        return _status(app)
    check_backend(app.env, app.loaded.settings.store.url)
    words = [f"--host={host}", f"--port={port}", *(f"--name={name}" for name in names)]
    words += ["--no-run"] if no_run else []
    words += [f"--max={most}"] if most else []
    if config is not None:
        words.append(f"--config={config.absolute()}")
    if background:
        return _background(app, words, port)
    return _serve(app, host, port, names, None if no_run else most or 0)


def _serve(app: App, host: str, port: int, names: tuple[str, ...], most: int | None) -> int:
    """Run the server. `most`: runs at once; 0: as the settings say; None: without a supervisor."""
    from fleet.app.supervise import Options, SupervisorThread, on_signals
    from fleet.cli.supervisor.report import TerminalReport
    from fleet.server.run import RunningServer

    serving = RunningServer(app, host=host, port=port, names=names)
    thread = None
    if most is not None:
        config = str(app.config_file.absolute()) if app.config_file else ""
        options = Options(most=most, config=config, cwd=str(app.cwd))
        report = TerminalReport(serving.heard)
        thread = SupervisorThread(
            lambda: app.another(listening=True),
            options,
            report,
            serving.stop,
            lambda: serving.crowded,
        )

    def stop(number: int) -> None:
        if thread:
            thread.ended_by = number
        serving.stop()

    on_signals(stop, thread.wake if thread else lambda: None)
    serving.run(say, thread)
    return 0


def _stop(app: App, service: Service) -> Result:
    from fleet.app.server_process import serving_pid

    stopped = service.stop(START)
    if stopped:
        app.let_agents_go_on()
    text = "Stopped." if stopped else "No server is running in the background."
    pid = serving_pid(app.home.path)
    if pid:
        text += f" One runs in a terminal (pid {pid}); stop it there."
    return Result("server", {"running": bool(pid)}, Text(text))


def _status(app: App) -> Result:
    facts = server_facts(app.home.path)
    pairs: list[tuple[str, Any]] = [("server", "running" if facts["running"] else "stopped")]
    if facts["running"]:
        aside = "" if facts["background"] else " (not in the background)"
        pairs += [("address", facts["url"]), ("pid", f"{facts['pid']}{aside}")]
    return Result("server", facts, Pairs([*pairs, ("log", facts["log"])]))


def server_facts(home: Path) -> dict[str, Any]:
    """What is known of the running server, even if it runs in a terminal or as a system service."""
    from fleet.app.server_process import service_of, serving_at, serving_pid

    service = service_of(home)
    record, url = service.running(), serving_at(home)
    running = record is not None or bool(url)
    data: dict[str, Any] = {"running": running, "background": record is not None}
    if record is not None:
        url = url or f"http://127.0.0.1:{record.port}"  # it has begun, and says so in a moment
        data |= {"pid": record.pid, "port": record.port, "since": record.started_at, "url": url}
    elif url:
        pid, port = serving_pid(home), int(url.rpartition(":")[2])
        data |= {"pid": pid, "port": port, "url": url}
    return data | {"log": str(service.log)}


def _background(app: App, words: list[str], port: int) -> Result:
    if port == 0:
        raise BadInput("--background needs a fixed port.", fix="Give --port.")
    start_in_background(app, words, port)
    return _status(app)


def start_in_background(app: App, words: list[str], port: int) -> None:
    """Start `fleet serve WORDS`, and wait until it answers. Raise `Refused` if another port has one."""
    from fleet.app.compute.gateway import answers
    from fleet.app.server_process import begin, service_of, within
    from fleet.cli.terminal.progress import ProgressLine

    service = service_of(app.home.path)
    with service.alone():
        facts = server_facts(app.home.path)
        if facts["running"] and facts["port"] == port:
            return
        if facts["running"]:
            how = (
                "`fleet serve --stop` stops it" if facts["background"] else "Stop it where it runs"
            )
            raise Refused(
                f"The server is already running at {facts['url']}.",
                fix=f"{how}, then start it on port {port}.",
            )
        since = service.log_size()
        process = begin(service, ["serve", *words], port=port, cwd=app.cwd)
        with ProgressLine("Starting the server"):
            up = within(START, lambda: answers(port, "/health") or process.poll() is not None)
        if not up or process.poll() is not None:
            service.stop(1.0)
            output = " ".join(service.words(4, since).split())
            raise Unavailable(f"It did not start: {output}", fix=f"Look at {service.log}.")
        if "--no-run" not in words:  # what is added next is not to hear that nothing starts it
            within(SUPERVISES, lambda: app.daemon.supervises() or process.poll() is not None)
