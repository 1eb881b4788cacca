"""What came of the work: done, landed, failed, what it cost, and how long it waited for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Name, Whole
from fleet.domain.spending.stats import DAY, KINDS, Stats, StatsFacts, StatsSpan, stats_of
from fleet.domain.task import Directory
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import team_in_view
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.domain.event import Event
    from fleet.domain.message import Message
    from fleet.operations.catalogue import Context

PAGE = 10_000
MOST_EVENTS = 500_000
MOST_OPEN = 1000  # open questions and tasks in review that are looked at


@dataclass(frozen=True, slots=True)
class ShowStats(Request[Stats]):
    """`since` and `until`: without them, a week ago and now.

    `east`: the minutes that the caller's clock is ahead of UTC, for where days begin.
    """

    since: Time = 0
    until: Time = 0
    project: Directory = ""
    team: Name = ""
    east: Annotated[int, Whole(-14 * 60, 14 * 60)] = 0


def show_stats(context: Context, request: ShowStats) -> Stats:
    team = team_in_view(context, request.team)
    span = _span(request, context.store.now())
    events = list(_events(context, span))
    live = context.store.live_runs()
    questions = [*_answered(context, events), *_open(context, team, span)]
    names = {e.task for e in events} | {r.task for r in live} | {q.task for q in questions}
    tasks = context.store.tasks_by_id(sorted(names))
    review = TaskQuery(("review",), request.project, team, limit=MOST_OPEN)
    tasks |= {task.id: task for task in context.store.tasks(review)}
    tasks = {
        name: task
        for name, task in tasks.items()
        if team in {"", task.team} and request.project in {"", task.project}
    }
    ended = {e.run for e in events if e.type == Kind.RUN_ENDED and e.task in tasks}
    last = {task.run_id for task in tasks.values() if task.run_id}
    runs = context.store.runs_by_id(sorted(ended | last))
    return stats_of(StatsFacts(events, tasks, runs, live, questions), span)


def _span(request: ShowStats, now: int) -> StatsSpan:
    until = min(request.until or now, now)
    since = request.since or until - 7 * DAY
    if not 0 <= since <= until:
        raise Refused("`until` is before `since`.", fix="Give an earlier `since`.")
    return StatsSpan(since, until, request.east)


def _events(context: Context, span: StatsSpan) -> Iterator[Event]:
    after = context.store.number_before(span.since)
    for _ in range(MOST_EVENTS // PAGE):
        page = context.store.events_of_kinds(KINDS, after=after, limit=PAGE)
        yield from (event for event in page if event.at <= span.until)
        if len(page) < PAGE or page[-1].at > span.until:
            return
        after = page[-1].number
    raise Refused(
        f"There are over {MOST_EVENTS} events in that time.", fix="Choose a shorter time."
    )


def _answered(context: Context, events: list[Event]) -> Iterator[Message]:
    for event in events:
        if event.type == Kind.MESSAGE_ANSWERED:
            try:
                yield context.store.message(str(event.data.get("message", "")))
            except NotFound:
                continue


def _open(context: Context, team: str, span: StatsSpan) -> list[Message]:
    questions = context.store.questions(team=team, limit=MOST_OPEN)
    return [question for question in questions if question.at <= span.until]


OPERATIONS = (
    Operation(
        "stats.show",
        ShowStats,
        Permission.READ,
        show_stats,
        "Count what was done, what it cost, and how long it waited for people.",
    ),
)
