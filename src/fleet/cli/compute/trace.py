"""`fleet trace`: one line per request that the relay answered, or the lines of LiteLLM's log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.render import room
from fleet.cli.terminal.view import Cell, ItemStream, Result, Table, Text
from fleet.domain.errors import BadInput, NotFound

if TYPE_CHECKING:
    from fleet.cli.terminal.view import Style

GRAVE: dict[str, Style] = {"quiet": "dim", "good": "green", "warning": "yellow", "error": "red"}
NOTHING = "No requests yet. `fleet up` starts the gateway and the relay, which records them."

RUNS = "No requests yet. The gateway runs, and nothing has reached it; `fleet doctor` tests every model."


@command()
@click.option("-f", "--follow", is_flag=True, help="Follow new lines until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(0), default=20, help="How many of the newest to show."
)
@click.option("--agent", default="", metavar="NAME", help="Only requests of this agent.")
@click.option("--node", default="", metavar="NAME", help="Only requests that this node answered.")
@click.option(
    "--since", default="", metavar="WHEN", help="Only requests since then: 15m, 2h, 14:30 …"
)
@click.option(
    "--here", is_flag=True, help="Only requests of this project, not of all your projects."
)
@click.option("--explain", is_flag=True, help="Show why that node: the estimates, term by term.")
@click.option(
    "--log-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Show this log of LiteLLM instead.",
)
def trace(
    *,
    follow: bool,
    lines: int,
    agent: str,
    node: str,
    since: str,
    here: bool,
    explain: bool,
    log_file: Path | None,
) -> Result:
    """Show the requests that the relay has answered, one per line, newest last.

    Tokens are those of the prompt, those of the reply, and those of the prompt that the node had
    cached. FIRST is the time to the first piece of the reply; WAIT is the part of it spent waiting
    for a free slot. A trace contains no text of prompts or replies.

    WHEN is how long ago (90s, 15m, 2h, 3d), a time of the day (14:30) or a date
    (2026-11-02T14:30).
    """
    from fleet.app.compute.traces import coming_traces, last_traces, traces_of, wanted
    from fleet.cli.compute.trace_views import line, trace_data
    from fleet.config.places import home

    if log_file is not None:
        if agent or node or since or here or explain:
            raise BadInput(
                "--log-file cannot be combined with --agent, --node, --since, --here or --explain.",
                fix="Leave the other options out.",
            )
        return _log(log_file, lines, follow=follow)
    path = traces_of(home(os.environ))
    which = wanted(agent, node, since, _project() if here else "")
    if follow:
        coming = map(trace_data, coming_traces(path, which, lines))
        return Result(
            "trace", coming, ItemStream(lambda each: line(each, explain=explain, room=room()))
        )
    traces = [trace_data(each) for each in last_traces(path, which, lines)]
    if explain and traces:
        texts = [line(each, explain=True, room=room()).text for each in traces]
        return Result("traces", traces, Text("\n".join(texts)))
    empty = "No request matches." if agent or node or since or here else _nothing()
    return Result("traces", traces, _table(traces, empty))


def _table(traces: list[dict[str, Any]], empty: str) -> Table:
    """The table of traces; with a column for the project if they are of several projects."""
    from fleet.cli.compute.trace_views import COLUMNS, PROJECT, cells

    rows = [cells(each) for each in traces]
    if len({each["project"] for each in traces}) < 2:
        return Table(COLUMNS, rows, empty=empty)
    names = [Path(each["project"]).name or None for each in traces]
    both = [[row[0], name, *row[1:]] for row, name in zip(rows, names, strict=True)]
    return Table((COLUMNS[0], PROJECT, *COLUMNS[1:]), both, empty=empty)


def _nothing() -> str:
    """What to say when there are no traces: how to start the gateway, if it is not running."""
    from fleet.app.compute.traces import gateway_runs
    from fleet.config.places import home

    return RUNS if gateway_runs(home(os.environ)) else NOTHING


def _project() -> str:
    """The directory whose fleet.yaml the relay serves. Raise `NotFound` when there is none here."""
    from fleet.config.places import find_project

    project = find_project(Path.cwd())
    if project is None:
        raise NotFound("There is no fleet.yaml here.", fix="Leave --here out.")
    return str(project)


def _log(path: Path, lines: int, *, follow: bool) -> Result:
    from fleet.app.compute.traces import coming_lines, last_lines

    if not path.is_file():
        raise NotFound(f"There is no file {path}.", fix="`fleet gateway logs` shows our own.")
    if follow:
        return Result("log", map(_entry, coming_lines(path, lines)), ItemStream(_log_line))
    entries = [_entry(line) for line in last_lines(path, lines)]
    return Result("log", entries, Text("") if wants_json() else ItemStream(_log_line))


def _entry(written: str) -> dict[str, Any]:
    from fleet.domain.nodes.litellm_log import read

    return read(written)._asdict()


def _log_line(entry: dict[str, Any]) -> Cell:
    from fleet.domain.nodes.litellm_log import LogEntry, display_text

    return Cell(display_text(LogEntry(**entry)), GRAVE.get(entry["grave"], ""))
