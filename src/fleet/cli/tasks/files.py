"""The files of a task, and the supervisor's log: task, log."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.completion import complete_tasks
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import FleetCommand, command
from fleet.cli.terminal.output import columns
from fleet.cli.terminal.render import ItemStream, Raw, Result, Text
from fleet.domain.errors import BadInput, Refused
from fleet.domain.task import ENDED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleet.cli.terminal.view import View
    from fleet.client import Client
    from fleet.operations.tasks.show import TaskDetail

FILES = {
    "log": "log.jsonl",
    "plan": "artifacts/PLAN_AND_STATUS.md",
    "knowledge": "artifacts/KNOWLEDGE.md",
    "qa": "artifacts/Q&A.md",
    "events": "events.jsonl",
    "stderr": "log.stderr",
}
FOLLOWED = ("log", "events", "stderr")
WHAT = (*FILES, "result")
MOST_SHOWN = 50  # running tasks in the help


class TaskCommand(FleetCommand):
    """Its help ends with the tasks that run now."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Running now"):
            for line in _running() or ["Nothing."]:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def _running() -> list[str]:
    """A home that is not there, or cannot be read, is no reason to show no help."""
    from fleet.client import connect
    from fleet.operations.tasks.list import ListTasks

    with suppress(Exception):
        client = connect()
        if client.home.is_dir():  # help makes nothing
            rows = client.call(ListTasks(statuses=("running",), limit=MOST_SHOWN))
            return [f"{t.id}  [{t.coder}/{t.model or 'its own'}]  {t.title}" for t in rows]
    return []


@click.command(cls=TaskCommand, json=True, config=True)
@click.argument("name", metavar="TASK", shell_complete=complete_tasks)
@click.argument("what", metavar="WHAT", type=click.Choice(WHAT))
@click.option(
    "-n", "--lines", type=click.IntRange(min=1), help="Show only this many of the last lines."
)
@click.option("-f", "--follow", is_flag=True, help="Follow until the task has ended.")
def task(
    name: str,
    what: str,
    lines: int | None,
    follow: bool,  # noqa: FBT001  # click passes by name
    config: Path | None,
) -> Result:
    """Show one of a task's files.

    WHAT is one of these:

        log        what happened to it (log.jsonl)
        plan       its agent's plan and progress (artifacts/PLAN_AND_STATUS.md)
        knowledge  what its agents found out (artifacts/KNOWLEDGE.md)
        qa         questions and answers (artifacts/Q&A.md)
        events     what its agents said and did, and how each run ended (events.jsonl)
        stderr     what its coders wrote to stderr: while one runs, that one's (log.stderr)
        result     the last words of its newest run
    """
    from fleet.operations.tasks.show import ShowTask

    if follow and what not in FOLLOWED:
        raise BadInput(f"'{what}' cannot be followed.", fix=f"These can: {', '.join(FOLLOWED)}.")
    client = connect(config=config)
    detail = client.call(ShowTask(name))
    if what == "result":
        return _result(detail, lines)
    client.refresh(detail.task.id)
    path = _path(client, detail, what)
    clean = _redacted() if path.name == "stderr" else None
    if follow:
        goes_on = partial(_goes_on, client, detail, live=clean is not None)
        return _followed(lambda: path, lines, goes_on, clean)
    if not path.is_file():
        raise _nothing(detail.task.id, what)
    return _view({"task": detail.task.id, "what": what}, path, lines, clean)


def _goes_on(client: Client, detail: TaskDetail, *, live: bool) -> bool:
    """Whether the file may still grow: while the run, or else the task, has not ended."""
    from fleet.operations.tasks.show import ShowTask

    if live:
        name = detail.runs[-1].id
        runs = client.call(ShowTask(detail.task.id)).runs
        return any(run.id == name and run.ended_at is None for run in runs)
    return client.state(detail.task.id) not in ENDED


def _path(client: Client, detail: TaskDetail, what: str) -> Path:
    """The file; of a coder that runs, what it writes to stderr now."""
    run = detail.runs[-1] if detail.runs else None
    if what == "stderr" and run is not None and run.ended_at is None:
        live = client.home / "runs" / run.id / "stderr"
        if live.exists():
            return live
    return client.home / "tasks" / detail.task.id / FILES[what]


def _nothing(task_id: str, what: str) -> Refused:
    why = {
        "events": "none of its agents has written output on this host",
        "stderr": "no run of it has ended on this host",
    }.get(what, "it could not be written")
    return Refused(
        f"{task_id} has no {FILES[what]}: {why}.",
        fix=f"`fleet show {task_id}` shows its state.",
        code="no_file",
    )


def _result(detail: TaskDetail, lines: int | None) -> Result:
    if not detail.runs:
        raise Refused(
            f"{detail.task.id} has not run yet.",
            fix=f"`fleet show {detail.task.id}` says why.",
            code="no_run",
        )
    run = detail.runs[-1]
    progress = detail.task.run
    text = run.detail or (progress.last if progress else "")
    if lines is not None:
        text = "\n".join(text.splitlines()[-lines:])
    data = {"task": detail.task.id, "what": "result", "run": run.id, "ending": run.ending or None}
    return Result("task_file", {**data, "text": text}, Text(text) if text else Raw(""))


@command()
@click.argument("lines", metavar="[N]", required=False, type=click.IntRange(min=1))
@click.option("-f", "--follow", is_flag=True, help="Follow until interrupted.")
def log(lines: int | None, follow: bool) -> Result:  # noqa: FBT001  # click passes by name
    """Show the supervisor's newest log, or its last N lines.

    On a terminal each record is one line: its time, its run, its text. Elsewhere it is JSON, as in
    the file.
    """
    from fleet.client import connect

    logs = connect().home / "logs"
    if follow:
        return _followed(lambda: _newest(logs), lines, lambda: True, None, readable=_record)
    newest = _newest(logs)
    if newest is None:
        note = f"No supervisor has written a log in {logs} yet. Start one: fleet run"
        return Result("log", {"path": None, "text": ""}, Raw(""), notes=(note,))
    return _view({}, newest, lines, None, kind="log", readable=_record)


def _record(line: str) -> str:
    """A record of the log: a readable line at a terminal, else its JSON."""
    from fleet.cli.terminal.log_lines import readable

    room = columns(sys.stdout)
    return line if room is None else readable(line, room)


def _newest(logs: Path) -> Path | None:
    """The newest log, by the day in its name."""
    return max(logs.glob("fleet-????-??-??.jsonl"), default=None)


def _view(
    data: dict[str, Any],
    path: Path,
    lines: int | None,
    clean: Callable[[str], str] | None,
    *,
    kind: str = "task_file",
    readable: Callable[[str], str] = str,
) -> Result:
    from fleet.cli.terminal.tail import last_lines

    text = last_lines(path, lines).decode("utf-8", "replace")
    text = clean(text) if clean else text
    view: View = Raw(text)
    if sys.stdout.isatty() and text:
        view = Text("\n".join(readable(line) for line in text.removesuffix("\n").split("\n")))
    return Result(kind, {**data, "path": str(path), "text": text}, view)


def _followed(
    path: Callable[[], Path | None],
    lines: int | None,
    going: Callable[[], bool],
    clean: Callable[[str], str] | None,
    *,
    readable: Callable[[str], str] = str,
) -> Result:
    from fleet.cli.terminal.tail import follow

    items = ({"line": clean(line) if clean else line} for line in follow(path, lines, going))
    return Result("line", items, ItemStream(lambda item: readable(item["line"])))


def _redacted() -> Callable[[str], str]:
    from fleet.domain.redaction import Redactor, secret_values

    return Redactor(secret_values(os.environ)).text
