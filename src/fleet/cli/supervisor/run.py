"""The supervisor: in the foreground, or started, asked about and stopped from outside."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.supervisor.status import going, or_none, supervisor_facts, supervisor_pairs
from fleet.cli.terminal.completion import complete_coders
from fleet.cli.terminal.connect import connect_here, say_warnings
from fleet.cli.terminal.frame import group, wants_json
from fleet.cli.terminal.view import Pairs, Result, Text
from fleet.domain.errors import BadConfig, BadInput, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.app import App
    from fleet.app.supervise import Options
    from fleet.client import LocalClient

START = 30.0  # seconds for a supervisor to take up its host; the store may be far away
ADOPTING = 5.0
STOP = 30.0  # it ends between two steps, none of which waits


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    most = click.IntRange(1, 1000)
    for option in (
        click.option(
            "--once", is_flag=True, help="Exit when nothing runs and nothing could start."
        ),
        click.option("--max", "most", type=most, help="The maximum number of runs at once."),
        click.option(
            "--coder",
            default="",
            shell_complete=complete_coders,
            help="The coder for tasks that name neither an agent nor a coder.",
        ),
    ):
        function = option(function)
    return function


@group(invoke_without_command=True, json=True, config=True)
@run_options
@click.option("--detach", is_flag=True, help="Run in the background, as `start` does.")
@click.pass_context
def run(
    ctx: click.Context,
    *,
    coder: str,
    most: int | None,
    once: bool,
    detach: bool,
    config: Path | None,
) -> Result | int:
    """Run the supervisor, which starts the ready tasks.

    Without a command it runs in this terminal until Ctrl-C. Agents keep running when it ends, and
    the next supervisor takes them over.
    """
    ctx.obj = config
    options = _options(coder, most, config, once=once, detached=False)
    if ctx.invoked_subcommand is None and detach:
        return _started(options)
    if ctx.invoked_subcommand is None:
        _refuse_json()
        return _foreground(options)
    if detach or options._replace(config="", cwd="") != type(options)():
        name = ctx.invoked_subcommand
        raise BadInput(f"`{name}` must come before the options.", fix=f"Write fleet run {name} …")
    return 0


@run.command("foreground", json=False, config=True)
@run_options
@click.option("--detached", is_flag=True, hidden=True)
@click.pass_obj
def foreground(
    before: Path | None,
    *,
    coder: str,
    most: int | None,
    once: bool,
    detached: bool,
    config: Path | None,
) -> int:
    """Run the supervisor in this terminal, as `fleet run` alone does."""
    return _foreground(_options(coder, most, config or before, once=once, detached=detached))


@run.command("start", config=True)
@run_options
@click.pass_obj
def start(
    before: Path | None, *, coder: str, most: int | None, once: bool, config: Path | None
) -> Result:
    """Start the supervisor in the background, and wait until it is ready.

    It writes to logs/supervisor.log in the home. If one is already running, nothing changes.
    """
    return _started(_options(coder, most, config or before, once=once, detached=True))


@run.command("stop", config=True)
@click.option("--agents", is_flag=True, help="Also end its agents; their tasks become open again.")
@click.pass_obj
def stop(before: Path | None, *, agents: bool, config: Path | None) -> Result:
    """Stop the supervisor. Agents keep running, and the next supervisor takes them over."""
    client = _client(config or before)
    pid = _stopped(client)
    text = f"Stopped the supervisor (pid {pid})." if pid else "No supervisor is running here."
    if agents:
        ended = client.stop_runs()
        tasks = [each.task for each in ended]
        text += f" Ended {_agents(len(ended))}{_open_again(tasks)}"
        return Result("stopped", {"pid": pid or None, "ended": tasks, "going": []}, Text(text))
    left = or_none(going, client)
    if left:
        text += f" {_agents(len(left))} {'keeps' if len(left) == 1 else 'keep'} running:"
        text += " `fleet run start` takes over, `fleet run stop --agents` ends them."
    return Result("stopped", {"pid": pid or None, "ended": [], "going": left}, Text(text))


def _open_again(tasks: list[str]) -> str:
    return f"; the next `fleet run` continues: {', '.join(tasks)}." if tasks else "."


@run.command("restart", config=True)
@click.pass_obj
def restart(before: Path | None, *, config: Path | None) -> Result:
    """Restart the supervisor with the same options, in this shell's environment."""
    from fleet.app.supervise import Options

    client = connect_here(config=config or before)
    last = client.app.daemon.last()
    pid = _stopped(client)
    options = Options(cwd=str(client.app.cwd), detached=True)
    if last is not None:
        cwd = last.cwd if Path(last.cwd).is_dir() else options.cwd
        options = options._replace(coder=last.coder, most=last.most, config=last.config, cwd=cwd)
    if config or before:
        options = options._replace(config=str((config or before or Path()).absolute()))
    left = going(client)
    done = _started(options)
    adopted = _adopted(client, left)
    was = f"Stopped the old supervisor (pid {pid}). " if pid else "No supervisor was running. "
    taken = f" It took over {_agents(adopted)}." if adopted else ""
    assert isinstance(done.view, Text)
    data = {**done.data, "before": pid or None, "adopted": adopted}
    return done._replace(data=data, view=Text(f"{was}{done.view.text}{taken}"))


@run.command("status", config=True)
@click.pass_obj
def status(before: Path | None, *, config: Path | None) -> Result:
    """Show whether the supervisor runs (exit status 1 if not), and the work it has."""
    facts = supervisor_facts(_client(config or before))
    return Result(
        "supervisor",
        facts,
        Pairs(supervisor_pairs(facts)),
        exit_status=0 if facts["running"] else 1,
    )


def _client(config: Path | None) -> LocalClient:
    """A client, even while the settings are broken: status and stop must work then, too."""
    from fleet.client import connect_here as connect_silently

    try:
        return connect_here(config=config)
    except BadConfig:
        return connect_silently(config=config)


def _options(
    coder: str, most: int | None, config: Path | None, *, once: bool, detached: bool
) -> Options:
    from fleet.app.supervise import Options
    from fleet.client import here

    where = here()
    named = str(config.absolute()) if config else ""
    return Options(coder, most or 0, named, str(where), once, detached)


def _app(options: Options, *, listening: bool) -> App:
    from fleet.app import App

    config = Path(options.config) if options.config else None
    return App(Path(options.cwd), os.environ, config_file=config, listening=listening)


def _refuse_json() -> None:
    if wants_json():
        raise BadInput(
            "`fleet run` in the foreground prints no JSON.", fix="fleet run --detach --json"
        )


def _foreground(options: Options) -> int:
    from fleet.app.supervise import supervise
    from fleet.cli.supervisor.report import RunReport

    app = _app(options, listening=True)
    _check_coder(app, options.coder)
    if not options.detached:  # who started that one has read it
        say_warnings(app.loaded.warnings)
    with RunReport() as report:
        supervise(app, options, report)
    return 0


def _check_coder(app: App, name: str) -> None:
    from fleet.app import make_coder

    if name:
        app.loaded.fleet.check_coder(name)
        make_coder(name, app.loaded.fleet)


def _started(options: Options) -> Result:
    """Start the supervisor in the background; errors in the settings are reported here."""
    from fleet.cli.terminal.progress import ProgressLine

    app = _app(options, listening=False)
    _check_coder(app, options.coder)
    say_warnings(app.loaded.warnings)
    if running := app.daemon.running():
        return _there(
            app, running.pid, f"A supervisor is already running here (pid {running.pid})."
        )
    since = app.daemon.log_size()
    process = app.daemon.start(_words(options), cwd=options.cwd)
    with ProgressLine("Starting the supervisor"):
        ready = app.daemon.wait_for(process, START)
    if ready:
        text = f"The supervisor runs (pid {process.pid}); it writes to {app.daemon.log}."
        return _there(app, process.pid, text)
    if running := app.daemon.running():  # another start was faster
        return _there(
            app, running.pid, f"A supervisor is already running here (pid {running.pid})."
        )
    if options.once and process.poll() == 0:
        return _there(app, process.pid, "The supervisor ended: there was nothing left to do.")
    raise _failure(app, process.poll(), since)


def _failure(app: App, status: int | None, since: int) -> Exception:
    how = "is not ready yet" if status is None else f"ended with status {status}"
    words = app.daemon.words(since=since) or "It printed nothing."
    return Unavailable(f"The supervisor {how}:\n{words}", fix=f"Its log is {app.daemon.log}.")


def _words(options: Options) -> list[str]:
    words = ["run", "foreground", "--detached"]
    words += ["--coder", options.coder] if options.coder else []
    words += ["--max", str(options.most)] if options.most else []
    words += ["--config", options.config] if options.config else []
    return [*words, *(["--once"] if options.once else [])]


def _there(app: App, pid: int, text: str) -> Result:
    data = {"pid": pid, "home": str(app.home.path), "log": str(app.daemon.log)}
    return Result("started", data, Text(text))


def _stopped(client: LocalClient) -> int:
    """The pid of the supervisor that we have stopped; 0: none ran."""
    from fleet.cli.terminal.progress import ProgressLine
    from fleet.domain.access import Permission, allow

    if "FLEET_RUN_ID" in os.environ:
        allow(client.app.actor, Permission.ADMIN)
    running = client.app.daemon.running()
    if running is None:
        return 0
    _not_inside(client.app, running.pid)
    with ProgressLine("Stopping the supervisor"):
        ended = client.app.daemon.stop(running, STOP)
    if not ended:
        raise Unavailable(
            f"The supervisor (pid {running.pid}) was asked to stop, but is still running.",
            fix=f"kill -9 {running.pid} ends it; its agents keep running.",
        )
    with suppress(BadConfig):  # it is stopped, but which store its agents use, nobody can say
        client.app.let_agents_go_on()
    return int(running.pid)


def _not_inside(app: App, pid: int) -> None:
    """Raise `Refused` when the supervisor runs inside the server, which would be stopped with it."""
    from fleet.app.server_process import service_of, serving_pid

    if pid != serving_pid(app.home.path):
        return
    apart = service_of(app.home.path).running() is not None
    how = (
        "`fleet serve --stop` stops both" if apart else f"Ctrl-C there, or `kill {pid}`, ends both"
    )
    raise Refused(
        f"The supervisor runs inside the server (pid {pid}).",
        fix=f"{how}; agents keep running. `fleet pause` keeps a task from starting.",
        code="inside_server",
    )


def _adopted(client: LocalClient, runs: list[str]) -> int:
    """How many of these runs the new supervisor has taken over, after waiting a while for it."""
    store, host = client.app.store, client.app.home.host_id()
    until = time.monotonic() + ADOPTING
    while True:
        holder = store.hosts()[host].holder
        live = [r for r in store.live_runs(host=host) if r.id in runs]
        adopted = sum(run.holder == holder for run in live)
        if adopted == len(live) or time.monotonic() > until:
            return adopted
        store.wait(0.05)


def _agents(count: int) -> str:
    return f"{count} agent{'' if count == 1 else 's'}"
