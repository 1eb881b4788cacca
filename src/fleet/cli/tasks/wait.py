"""`fleet wait`: until tasks have ended, or need a person."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.completion import complete_tasks_for
from fleet.cli.terminal.connect import connect, unsupervised
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.render import Result, Text, say
from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.client import Client
    from fleet.operations.tasks.rows import TaskRow
    from fleet.operations.tasks.show import TaskDetail

DONE, FAILED, NEEDS_YOU, GOES_ON = "done", "failed", "needs-you", "goes-on"
STATUS = {DONE: 0, FAILED: 1, GOES_ON: 3, NEEDS_YOU: 4}
OUTCOMES = {"done": DONE, "failed": FAILED, "cancelled": FAILED, "review": NEEDS_YOU}
MAY_BE_STUCK = frozenset({"asking", "held", "paused", "waiting", "children"})
HELD_BACK = frozenset({"no_program", "untrusted"})  # why a ready task does not start without you
MOST_READY = 10  # ready tasks of which a look asks why they do not start
HOW = {"failed": "failed", "review": "waits for your review"}  # else: is STATUS
FIXES = {
    "failed": "fleet retry {0}", "cancelled": "fleet retry {0}", "review": "fleet diff {0}",
}  # fmt: skip
DEEPEST = 20  # tasks that wait for each other in a row
LONGEST_PAUSE = 30.0  # seconds without a look, should the news of a change be lost
SHORTEST_PAUSE = 0.2  # seconds between two looks, however much is written
AT_ONCE = 200  # tasks in one request


@dataclass(frozen=True, slots=True)
class Waited:
    """`why`: what it needs from you, or how it ended; `fix`: what to type."""

    task: str
    title: str
    status: str
    outcome: str
    why: str = ""
    fix: str = ""


@command(config=True)
@click.argument("tasks", nargs=-1, metavar="TASK...", shell_complete=complete_tasks_for("wait"))
@click.option("--any", "first", is_flag=True, help="Wait only for the first of them.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Seconds to wait at most.")
def wait(
    tasks: tuple[str, ...],
    first: bool,  # noqa: FBT001  # click passes by name
    timeout: float | None,
    config: Path | None,
) -> Result:
    """Wait until every TASK has ended, or cannot go on without you.

    The exit status is 0 when all are done, 1 when one failed or was cancelled, 4 when one needs you
    (a question, a review), 3 when the time is over. A task that needs you is named at once.
    """
    from fleet.cli.tasks.bulk import named
    from fleet.operations.tasks.statuses import TAKES

    client = connect(config=config)
    names = named(client, tasks, TAKES["wait"], or_any=True)  # they may have ended just now
    waited = _until(client, names, first=first, timeout=timeout)
    status = _status(waited, first=first)
    return Result("waited", waited, Text("\n".join(map(_line, waited))), exit_status=status)


def _note_supervisor(client: Client, waited: Sequence[Waited]) -> None:
    """Print a note when no supervisor runs, so that the tasks cannot start."""
    begins = any(one.status in {"ready", "waiting", "postponed"} for one in waited)
    for note in unsupervised(client) if begins and not wants_json() else ():
        say(note, "yellow")


def _until(client: Client, names: list[str], *, first: bool, timeout: float | None) -> list[Waited]:
    until = time.monotonic() + timeout if timeout is not None else float("inf")
    announced: dict[str, Waited] = {}
    enough = any if first else all
    while True:
        looked = time.monotonic()
        waited = _stand(client, names, set())
        left = until - time.monotonic()
        if enough(one.outcome != GOES_ON for one in waited) or left <= 0:
            return waited
        if not announced:
            _note_supervisor(client, waited)
        _announce(waited, announced)
        client.wait(min(LONGEST_PAUSE, left))
        time.sleep(max(0.0, min(SHORTEST_PAUSE - (time.monotonic() - looked), left)))


def _announce(waited: Sequence[Waited], announced: dict[str, Waited]) -> None:
    """Print tasks that newly need a person while others go on. `announced`: those printed before."""
    for one in waited:
        if one.outcome == NEEDS_YOU and announced.get(one.task) != one and not wants_json():
            say(_line(one), "yellow")
        announced[one.task] = one


def _stand(client: Client, names: Sequence[str], above: set[str]) -> list[Waited]:
    """`above`: the tasks that wait for these, which are not looked at again."""
    from fleet.operations.messages.ask_answer_send import ListQuestions
    from fleet.operations.tasks.list import ListTasks

    rows: list[TaskRow] = []
    for start in range(0, len(names), AT_ONCE):
        some = tuple(names[start : start + AT_ONCE])
        page = client.call(ListTasks(tasks=some, limit=AT_ONCE))
        rows += page
    running = any(row.state == "running" for row in rows)
    questions = {q.task: q for q in client.call(ListQuestions(AT_ONCE))} if running else {}
    waited = []
    ready = [row.id for row in rows if row.status == "ready"][:MOST_READY]
    for row in rows:
        outcome = OUTCOMES.get(row.state, GOES_ON)
        if question := questions.get(row.id):
            why, fix = f"It asks: {question.text}", f"fleet answer {row.id} TEXT"
            waited.append(Waited(row.id, row.title, row.status, NEEDS_YOU, why, fix))
        elif outcome == DONE or (
            outcome == GOES_ON and row.status not in MAY_BE_STUCK and row.id not in ready
        ):
            waited.append(Waited(row.id, row.title, row.status, outcome))
        else:
            waited.append(_with_reason(client, row, outcome, {*above, row.id}))
    return waited


def _with_reason(client: Client, row: TaskRow, outcome: str, above: set[str]) -> Waited:
    from fleet.operations.tasks.show import ShowTask

    detail = client.call(ShowTask(row.id))
    if outcome == GOES_ON:
        counts = [w for w in detail.waits if row.status != "ready" or w.code in HELD_BACK]
        reason = next(((w.why, w.fix) for w in counts if w.fix), None)
        reason = reason or _below(client, detail, above)
        outcome = NEEDS_YOU if reason else GOES_ON
        why, fix = reason or ("", "")
    else:
        why, fix = " ".join(detail.why.split()), FIXES[row.state].format(row.id)
    return Waited(row.id, row.title, row.status, outcome, why, fix)


def _below(client: Client, detail: TaskDetail, above: set[str]) -> tuple[str, str] | None:
    """What needs a person in a task that it waits for, or in its children when none goes on."""
    names = [t for t in (*detail.after, *detail.children) if t not in above]
    below = _stand(client, names, above) if names and len(above) <= DEEPEST else []
    stuck = [one for one in below if one.outcome in {NEEDS_YOU, FAILED}]
    if not stuck or (detail.children and any(one.outcome == GOES_ON for one in below)):
        return None
    return f"{stuck[0].task} is {stuck[0].status}. {stuck[0].why}".strip(), stuck[0].fix


def _status(waited: Sequence[Waited], *, first: bool) -> int:
    """Of those that it waited for: the first failure counts, then what needs somebody."""
    outcomes = {one.outcome for one in waited}
    if first and outcomes != {GOES_ON}:
        outcomes -= {GOES_ON}
    order = (FAILED, GOES_ON, NEEDS_YOU, DONE)
    return next(STATUS[outcome] for outcome in order if outcome in outcomes)


def _line(one: Waited) -> str:
    from fleet.cli.tasks.views import with_fix

    why = f" {one.why}" if one.why and one.outcome != DONE else ""
    how = HOW.get(one.status, f"is {one.status}")
    return with_fix(f"{one.task} {how}: {one.title}.{why}", one.fix)
