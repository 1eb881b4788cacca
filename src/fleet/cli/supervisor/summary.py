"""What became of the tasks while a supervisor ran: done, failed, asking and left, with what to type."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING

from fleet.cli.supervisor.sentences import (
    NOTHING,
    after_done,
    after_failure,
    after_review,
    changed_nothing,
)
from fleet.cli.terminal.human import SECOND, duration, money
from fleet.cli.terminal.view import Cell, Column, Stack, Table, Text
from fleet.domain.data import NamedTuple
from fleet.domain.event import Kind
from fleet.domain.inbox import landing_item
from fleet.domain.landing.landing import LandingState
from fleet.domain.schedule import waits
from fleet.domain.task import TaskState
from fleet.ports import LandingQuery, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.cli.terminal.view import Style, Value
    from fleet.domain.event import Event
    from fleet.domain.task import Task
    from fleet.ports import Store

MAX_COUNTED = 200  # tasks of a kind that are read
MOST_SHOWN = 8  # of a kind; the next line counts the others
STYLES: dict[str, Style] = {
    "landed": "green",
    "done": "green",
    "failed": "red",
    "left": "dim",
    "beaten": "dim",
}
LISTS = {  # where the others are
    "landed": "fleet tasks --status landed",
    "landing": "fleet land list",
    "held": "fleet land list",
    "done": "fleet tasks --status done",
    "uncommitted": "fleet tasks --status done",
    "beaten": "fleet pick",
    "failed": "fleet tasks --status failed",
    "review": "fleet tasks --status review",
    "asks": "fleet questions",
    "left": "fleet tasks",
}


class SummaryRow(NamedTuple):
    task: str
    what: str
    about: str
    next: str = ""


class SupervisorSummary:
    """`left`: by task, why a supervisor that ends by itself need not wait for it."""

    def __init__(self) -> None:
        self.left: dict[str, str] = {}
        self._began = time.monotonic()
        self._usd = 0.0
        self._runs = 0
        self._tasks: dict[str, None] = {}

    def note(self, event: Event, store: Store) -> None:
        if event.type in {Kind.TASK_SETTLED, Kind.TASK_LANDED}:
            self._tasks[event.task] = None
            return
        outcome = store.run(event.run).outcome
        self._runs += 1
        self._usd += outcome.usage.usd if outcome else 0.0

    def view(self, store: Store) -> Stack:
        rows = [
            *self._ended(store),
            *_kept_from_landing(store),
            *_asking(store),
            *self._left(store),
        ]
        columns = ("task", "what", Column("about", flexible=True, least=16), "next")
        heading = f"After {self._took()}, {self._count(rows)}."
        if not rows:
            return Stack([("", Text(heading, "bold"))])
        return Stack([(heading, Table(columns, list(_cells(rows))))])

    def _took(self) -> str:
        return duration(int(time.monotonic() - self._began) * SECOND)

    def _count(self, rows: Sequence[SummaryRow]) -> str:
        kinds = dict.fromkeys(row.what for row in rows)
        counts = {what: sum(row.what == what for row in rows) for what in kinds}
        parts = [
            f"{count}{'+' if count >= MAX_COUNTED else ''} {_word(what, count)}"
            for what, count in counts.items()
        ]
        runs = f"in {self._runs} run{'' if self._runs == 1 else 's'}" if self._runs else ""
        cost = f"for {money(round(self._usd * 1_000_000))}" if self._usd else ""
        if not parts:
            return "nothing was left to do" if not self._runs else f"every task has ended, {runs}"
        return ": ".join(filter(None, (" ".join(filter(None, (runs, cost))), ", ".join(parts))))

    def _ended(self, store: Store) -> Iterable[SummaryRow]:
        tasks = store.tasks_by_id(list(self._tasks))
        in_order = [tasks[task] for task in self._tasks if task in tasks]
        for state in (TaskState.DONE, TaskState.REVIEW, TaskState.FAILED):
            for task in islice((t for t in in_order if t.state is state), MAX_COUNTED):
                if row := _ended(task, store):
                    yield row

    def _left(self, store: Store) -> Iterable[SummaryRow]:
        for name, why in islice(sorted(self.left.items()), MAX_COUNTED):
            yield SummaryRow(name, "left", why, f"fleet show {name}")
        for task in store.tasks(TaskQuery((TaskState.OPEN,), limit=MAX_COUNTED, oldest_first=True)):
            if task.id not in self.left and (row := _waiting(task, store)):
                yield row


def _ended(task: Task, store: Store) -> SummaryRow | None:
    """The line for an ended task; None if its landing is held, which has its own line."""
    if task.state is TaskState.FAILED:
        about = f"{task.title}: {task.tally.why}"
        return SummaryRow(task.id, "failed", about, after_failure(task.id))
    if task.state is TaskState.REVIEW:
        return SummaryRow(task.id, "review", task.title, after_review(task.id))
    return _done(task, store)


def _done(task: Task, store: Store) -> SummaryRow | None:
    if task.tally.landed:
        about = f"{task.title} ({task.tally.landed[:7]})"
        return SummaryRow(task.id, "landed", about, f"fleet show {task.id}")
    if task.tally.beaten:
        about = f"{task.title}: {task.tally.beaten} was picked instead."
        return SummaryRow(task.id, "beaten", about, f"fleet pick {task.parent}")
    if not task.tally.landing:
        run = store.run(task.run_id)
        is_empty = changed_nothing(run) and not task.uncommitted
        about = f"{task.title} ({NOTHING})" if is_empty else task.title
        what = "uncommitted" if task.uncommitted else "done"
        return SummaryRow(task.id, what, about, after_done(run, task))
    landing = store.landing(task.tally.landing)
    if landing.state is LandingState.HELD:
        return None
    about = landing.why or f"{task.title}: it waits to land on {landing.branch}."
    return SummaryRow(task.id, "landing", about, f"fleet land show {landing.id}")


def _kept_from_landing(store: Store) -> Iterable[SummaryRow]:
    """The landings that are held until a person acts, as the inbox lists them."""
    landings = store.landings(LandingQuery(open_only=True, limit=MAX_COUNTED))
    waiting = [landing for landing in landings if landing.state is LandingState.HELD]
    tasks = store.tasks_by_id([landing.task for landing in waiting])
    for landing in waiting:
        if task := tasks.get(landing.task):
            item = landing_item(task, landing)
            yield SummaryRow(task.id, "held", item.words, item.actions[0].command)


def _asking(store: Store) -> list[SummaryRow]:
    questions = store.questions(limit=MAX_COUNTED)
    return [SummaryRow(q.task, "asks", q.text, f"fleet answer {q.task} TEXT") for q in questions]


def _waiting(task: Task, store: Store) -> SummaryRow | None:
    """The line for a waiting task; None if its question or its children have their own lines."""
    needs = store.tasks_by_id(task.after)
    reasons = waits(task, list(needs.values()), store.messages(task.id), now=store.now())
    if any(reason.code in {"asking", "children"} for reason in reasons):
        return None
    if not reasons:
        return SummaryRow(task.id, "left", "It is ready.", "fleet run")
    return SummaryRow(task.id, "left", reasons[0].why, reasons[0].fix or f"fleet show {task.id}")


def _word(what: str, count: int) -> str:
    if what == "asks":
        return "asks" if count == 1 else "ask"
    return "to review" if what == "review" else what


def _cells(rows: Sequence[SummaryRow]) -> Iterable[list[Value]]:
    for what in dict.fromkeys(row.what for row in rows):
        same = [row for row in rows if row.what == what]
        for row in same[:MOST_SHOWN]:
            about = " ".join(row.about.split())
            yield [row.task, Cell(what, STYLES.get(what, "yellow")), about, row.next]
        if len(same) > MOST_SHOWN:
            more = f"and {len(same) - MOST_SHOWN} more"
            yield [None, Cell(what, "dim"), more, LISTS[what]]
