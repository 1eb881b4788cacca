"""`fleet review`: what is done and not landed; look at one, accept it or send it back."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.completion import complete_tasks_to_land
from fleet.cli.terminal.connect import connect, unsupervised
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.render import say
from fleet.cli.terminal.view import Cell, Column, Raw, Result, Table, Text
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.cli.terminal.view import Value
    from fleet.client import Client
    from fleet.operations.landing.review import ReviewRow
    from fleet.operations.tasks.rows import TaskRow

MAX_LISTED = 200  # rows of a list


@command(config=True)
@click.argument("task", metavar="[TASK]", default="", shell_complete=complete_tasks_to_land)
@click.option("--accept", is_flag=True, help="Accept the work: queue it to land.")
@click.option("--onto", default="", metavar="BRANCH", help="The branch to land on.")
@click.option("--send-back", "text", default=None, metavar="TEXT", help="Send it back with TEXT.")
@click.option("--agent", default="", metavar="NAME", help="Have this agent review the work.")
@click.option("-a", "--all", "everywhere", is_flag=True, help="List the work of every project.")
def review(
    *,
    task: str,
    accept: bool,
    onto: str,
    text: str | None,
    agent: str,
    everywhere: bool,
    config: Path | None,
) -> Result:
    """List the work that is done and not landed, or look at that of TASK and judge it.

    With TASK on a terminal: git shows what it changed, then you accept it or send it back. Remarks
    that were made with `fleet comment TASK --file FILE` go with what is sent back.
    """
    given = [accept, text is not None, bool(agent)]
    if not task and (any(given) or onto):
        raise BadInput("Name the task.", fix="fleet review lists them.")
    if sum(given) > 1:
        raise BadInput(
            "--accept, --send-back and --agent cannot be used together.", fix="Give one."
        )
    client = connect(config=config)
    if not task:
        return _listed(client, everywhere=everywhere)
    if agent:
        return _ask_agent(client, task, agent)
    if accept or text is not None:
        return _judged(client, task, text, onto)
    return _looked_at(client, task, onto)


def _listed(client: Client, *, everywhere: bool) -> Result:
    from fleet.operations.landing.review import ListReviews

    client.note_merged()
    rows = client.call(ListReviews(client.scope(everywhere=everywhere), MAX_LISTED))
    columns: list[Column | str] = [
        "task", "status", Column("title", flexible=True), Column("brings", spare=2, flexible=True),
        Column("lines", right=True), Column("gate", spare=1), Column("cost", right=True, spare=3),
        Column("done", spare=4), Column("conflicts", flexible=True, spare=1),
    ]  # fmt: skip
    now = client.now()
    cells = [_cells(row, now) for row in rows]
    hint = (f"Look at one: fleet review {rows[0].task}",) if rows else ()
    table = Table(columns, cells, empty="Nothing is done and not landed.")
    return Result("reviews", rows, table, hint)


def _cells(row: ReviewRow, now: int) -> list[Value]:
    from fleet.cli.terminal.human import ago, money

    lines = "-" if row.added is None else f"+{row.added} -{row.removed}"
    gate = Cell(row.gate, {"passed": "green", "failed": "red"}.get(row.gate, ""))  # type: ignore[arg-type]
    status = f"{row.status} ({row.part_of} brings it)" if row.part_of else row.status
    return [
        row.task, status, row.title, _names(row.brings), lines, gate,
        money(row.cost) if row.cost else "-",
        ago(row.at, now), _conflicts(row),
    ]  # fmt: skip


def _names(tasks: tuple[str, ...]) -> str:
    """`t-1 to t-5`, or each of them."""
    numbers = sorted(int(task.removeprefix("t-")) for task in tasks)
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"t-{numbers[0]} to t-{numbers[-1]}"
    return ", ".join(f"t-{number}" for number in numbers)


def _conflicts(row: ReviewRow) -> str:
    parts = [f"{row.onto}: {_some(row.conflicts)}"] if row.conflicts else []
    return "; ".join([*parts, *([_some(row.rivals)] if row.rivals else [])])


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _ask_agent(client: Client, task: str, agent: str) -> Result:
    from fleet.operations.landing.review import AskReview

    row = client.call(AskReview(task, agent))
    words = f"{row.id} reviews it with {agent}. Its remarks come as comments: fleet show {task}"
    return Result("task", row, Text(words))


def _judged(client: Client, task: str, text: str | None, onto: str) -> Result:
    from fleet.operations.landing.review import ACCEPT, SEND_BACK, SubmitReview

    verdict = ACCEPT if text is None else SEND_BACK
    row = client.call(SubmitReview(task, verdict, text or "", onto))
    return Result(
        "task", row, Text(_sentence(row, verdict)), unsupervised(client, "nothing happens")
    )


def _sentence(row: TaskRow, verdict: str) -> str:
    if verdict == "accept":
        return f"Accepted {row.id}: it waits to land ({row.landing})."
    return f"Sent {row.id} back to its agent."


def _looked_at(client: Client, task: str, onto: str) -> Result:
    from fleet.cli.tasks.diff import unified
    from fleet.cli.terminal.output import is_terminal
    from fleet.operations.landing.review import DiffTask

    if wants_json() or client.is_remote or not (is_terminal(sys.stdout) and sys.stdin.isatty()):
        done = client.call(DiffTask(task))
        notes = (f"fleet review {done.task} --accept, or --send-back TEXT",) if done.files else ()
        view = Raw("".join(map(unified, done.files))) if done.files else Text("It changed nothing.")
        return Result("diff", done, view, notes)
    _show_diff(client, task)
    return _decide(client, task, onto)


def _show_diff(client: Client, name: str) -> None:
    from fleet.domain.access import Permission
    from fleet.operations.shared.names import the_task

    local = client.this_machine("A review")
    task = the_task(local.context, name, Permission.READ)
    argv = local.workspaces.diff_command(task)
    if argv:
        subprocess.run(argv, check=False)
    else:
        say(f"{task.id} has changed nothing.")


def _decide(client: Client, task: str, onto: str) -> Result:
    """By one key: what to do with the work."""
    while True:
        say("a: accept and land it   s: send it back   d: show it again   q: leave it")
        match click.getchar().lower():
            case "a":
                return _judged(client, task, None, onto)
            case "s":
                say("What should its agent change? (End with an empty line; remarks go along.)")
                return _judged(client, task, _typed(), onto)
            case "d":
                _show_diff(client, task)
            case "q" | "\x1b" | "\x04":
                return Result("task", None, Text(f"Nothing was decided about {task}."))


def _typed() -> str:
    lines: list[str] = []
    for line in iter(sys.stdin.readline, ""):
        if not line.strip():
            break
        lines.append(line.rstrip("\n"))
    return "\n".join(lines)
