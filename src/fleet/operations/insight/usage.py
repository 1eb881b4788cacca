"""Reports of tokens, money and time by day, agent, model and so on; and budgets of running tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import FleetError
from fleet.domain.limits import Name, OneOf, Whole
from fleet.domain.run import Usage
from fleet.domain.spending.budget import declared_budget, granted, per_minute
from fleet.domain.spending.usage import (
    HOUR,
    KEPT,
    NO_HOUR,
    Hour,
    UsageGroup,
    UsedAmount,
    body_of,
    hour_from,
    hour_of,
    saved,
    summed,
    used_by,
    who_of,
)
from fleet.domain.task import Directory
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import team_in_view
from fleet.ports import EntryQuery, Put

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fleet.domain.run import Outcome, Run
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Store

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 24 * HOUR
LONGEST_PERIOD = 92 * DAY
PAGE = 500
MOST_HOURS = 50_000  # stored hours that are read, of all teams together
TOP = 50  # rows of a report, except by day or hour
BY = ("day", "hour", "agent", "coder", "model", "node", "project", "team", "task")


@dataclass(frozen=True, slots=True)
class UsedRow:
    """`cost` is in millionths of a dollar, `worked` in microseconds.

    `cached`: tokens that a model read again, which `input` does not count.
    """

    name: str
    runs: int
    input: int
    output: int
    cached: int
    cost: int
    worked: int


@dataclass(frozen=True, slots=True)
class UsageReport:
    """`rows`: the most expensive first, days and hours in their order.

    `live`: how many runs are counted that have not ended. `saved`: what the tokens of nodes that
    cost nothing (`local`) would have cost at the price of the others.
    """

    by: str
    since: Time
    until: Time
    total: UsedRow
    rows: tuple[UsedRow, ...]
    local: UsedRow
    saved: int
    live: int


@dataclass(frozen=True, slots=True)
class ReportUsage(Request[UsageReport]):
    """By the hour in which runs ended; runs that go on count in this one.

    `since` and `until`: without them, a week ago and now; of a longer time, the last 92 days. `east`: the minutes that the caller's clock
    is ahead of UTC, for where days begin.
    """

    by: Annotated[str, OneOf(BY, "group")] = "day"
    since: Time = 0
    until: Time = 0
    project: Directory = ""
    team: Name = ""
    east: Annotated[int, Whole(-14 * 60, 14 * 60)] = 0


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """What a task that runs may cost in all, and has cost. Of each, 0: not limited.

    `own`: the task's own budget, rather than that of the settings. `burn`: what it has cost for
    each minute of work, in millionths of a dollar; 0 in its first seconds.
    """

    task: str
    title: str
    agent: str
    own: bool
    cost: int
    cost_spent: int
    tokens: int
    tokens_spent: int
    seconds: int
    seconds_spent: int
    burn: int = 0


@dataclass(frozen=True, slots=True)
class ListBudgets(Request[tuple[BudgetRow, ...]]):
    """Of the tasks that run now, the most expensive first."""

    project: Directory = ""
    team: Name = ""


def usage_change(store: Store, task: Task, run: Run, outcome: Outcome, now: int) -> Put:
    """The change that adds what this run used to the sums of the current hour."""
    hour = hour_of(now)
    entry = store.entry(EntryKind.USAGE, task.team, str(hour))
    sums = hour_from(entry.body) if entry else NO_HOUR
    sums = sums.plus(who_of(run.choice, task.project), task.id, used_by(run, outcome, now))
    if entry is None:
        new = store.new_id("e")
        entry = Entry(new, 0, EntryKind.USAGE, task.team, str(hour), "", now, hour + KEPT)
    return Put(replace(entry, body=body_of(sums)))


def report_usage(context: Context, request: ReportUsage) -> UsageReport:
    team, now = team_in_view(context, request.team), context.store.now()
    until = min(request.until or now, now)
    since = max(request.since or until - 7 * DAY, until - LONGEST_PERIOD)
    parts = [*_ended(context, team, since, until)]
    live = [*_live(context, team)] if until >= now - MINUTE else []
    parts += [(hour_of(now), of, part) for of, part in live]
    if request.project:
        parts = [(at, of, _of_project(part, request.project)) for at, of, part in parts]
    by = _together(part for _, _, part in parts)
    rows = summed(_named(request, parts))
    local = [used for who, used in by.items() if who.node and not used.cost]
    return UsageReport(
        request.by,
        since,
        until,
        _row("", _sum(by.values())),
        _sorted(request.by, [_row(name, used) for name, used in rows.items() if any(used)]),
        _row("", _sum(local)),
        saved(by),
        len(live),
    )


def _ended(context: Context, team: str, since: int, until: int) -> Iterator[tuple[int, str, Hour]]:
    """The stored hours from `since` to `until`, newest first, each with its team."""
    before, count = "", 0
    while count < MOST_HOURS:
        query = EntryQuery(EntryKind.USAGE, team, before=before, limit=PAGE)
        page = context.store.entries(query)
        for entry in page:
            hour = int(entry.key)
            if hour_of(since) <= hour <= until:
                yield hour, entry.team, hour_from(entry.body)
        if len(page) < PAGE or int(page[-1].key) < hour_of(since):
            return
        before, count = page[-1].id, count + PAGE


def _live(context: Context, team: str) -> Iterator[tuple[str, Hour]]:
    store = context.store
    runs = store.live_runs()
    tasks = store.tasks_by_id([run.task for run in runs])
    progress = store.progress([run.id for run in runs])
    now = store.now()
    for run in runs:
        task = tasks.get(run.task)
        if task is None or team not in {"", task.team}:
            continue
        usage = progress[run.id].usage if run.id in progress else Usage()
        worked = max(0, now - run.started_at) if run.started_at else 0
        cost = round(usage.usd * 1_000_000)
        used = UsedAmount(1, usage.input, usage.output, usage.cached, cost, worked)
        yield task.team, NO_HOUR.plus(who_of(run.choice, task.project), task.id, used)


def _of_project(part: Hour, project: str) -> Hour:
    return Hour({who: used for who, used in part.by.items() if who.project == project}, {})


def _together(parts: Iterable[Hour]) -> dict[UsageGroup, UsedAmount]:
    sums: dict[UsageGroup, UsedAmount] = {}
    for part in parts:
        for who, used in part.by.items():
            sums[who] = sums.get(who, UsedAmount()).plus(used)
    return sums


def _named(
    request: ReportUsage, parts: list[tuple[int, str, Hour]]
) -> Iterator[tuple[str, UsedAmount]]:
    for at, team, part in parts:
        if request.by == "task":
            yield from part.tasks.items()
            continue
        for who, used in part.by.items():
            yield _name(request, at, team, who), used


def _name(request: ReportUsage, at: int, team: str, who: UsageGroup) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415  # start-up time

    if request.by in {"day", "hour"}:
        moved = datetime.fromtimestamp((at + request.east * MINUTE) // SECOND, UTC)
        return moved.date().isoformat() if request.by == "day" else f"{moved:%Y-%m-%dT%H}"
    return team if request.by == "team" else str(getattr(who, request.by))


def _sorted(by: str, rows: list[UsedRow]) -> tuple[UsedRow, ...]:
    if by in {"day", "hour"}:
        return tuple(sorted(rows, key=lambda row: row.name))
    return tuple(sorted(rows, key=lambda row: (-row.cost, -row.input - row.output, row.name))[:TOP])


def _sum(many: Iterable[UsedAmount]) -> UsedAmount:
    total = UsedAmount()
    for used in many:
        total = total.plus(used)
    return total


def _row(name: str, used: UsedAmount) -> UsedRow:
    return UsedRow(name, *used)


def list_budgets(context: Context, request: ListBudgets) -> tuple[BudgetRow, ...]:
    team, store = team_in_view(context, request.team), context.store
    runs = store.live_runs()
    tasks = store.tasks_by_id([run.task for run in runs])
    progress = store.progress([run.id for run in runs])
    rows = []
    for run in runs:
        task = tasks.get(run.task)
        if task is None or team not in {"", task.team} or request.project not in {"", task.project}:
            continue
        usage = progress[run.id].usage if run.id in progress else Usage()
        rows.append(_budget(context, task, run, usage))
    return tuple(sorted(rows, key=lambda row: (-row.cost_spent, -row.tokens_spent, row.task)))


def _budget(context: Context, task: Task, run: Run, usage: Usage) -> BudgetRow:
    own, now = task.spec.limits.budget, context.store.now()
    try:
        declared = context.world(task.project).settings.budget
        default = declared_budget(declared.usd, declared.tokens, declared.minutes)
    except FleetError:  # its settings have become wrong; `fleet validate` says how
        default = own
    whole = granted(own, default, task.tally.grants)
    spent = task.tally.spent + usage
    worked = task.tally.worked + (max(0, now - run.started_at) if run.started_at else 0)
    cost = round(spent.usd * 1_000_000)
    return BudgetRow(
        task.id, task.title, run.choice.agent, any((own.cost, own.tokens, own.seconds)),
        whole.cost, cost, whole.tokens, spent.tokens,
        whole.seconds, worked // SECOND, round(per_minute(cost, worked)),
    )  # fmt: skip


_READ = Permission.READ
OPERATIONS = (
    Operation("usage.report", ReportUsage, _READ, report_usage, "Report tokens, money and time."),
    Operation("budget.list", ListBudgets, _READ, list_budgets, "List what running tasks may cost."),
)
