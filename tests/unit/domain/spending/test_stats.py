from __future__ import annotations

from dataclasses import replace

from fleet.domain.event import Event, Kind
from fleet.domain.message import Message, MessageKind, MessageState, Receipt
from fleet.domain.run import Choice, Ending, Outcome, Run, RunState, Usage
from fleet.domain.spending.stats import DAY, MINUTE, StatsFacts, StatsSpan, stats_of
from fleet.domain.task import Tally, Task, TaskState

MIDNIGHT = 20_000 * DAY
SPAN = StatsSpan(MIDNIGHT, MIDNIGHT + 2 * DAY)
ANN, BOB = Choice("reviewer", "claude"), Choice("codex", "codex")


def task(number, state=TaskState.DONE, project="/shop", **tally):
    given = Tally(runs=1, **tally)
    return Task(f"t-{number}", 1, state, "x", "", project, "ada", 0, choice=ANN, tally=given)


def run(number, choice=ANN, *, start=MIDNIGHT, minutes=10, usd=0.5):
    usage = Usage(input=100, output=10, usd=usd)
    return Run(
        f"t-{number}.1", 1, f"t-{number}", RunState.ENDED, choice, "h", "h", start,
        started_at=start, ended_at=start + minutes * MINUTE, outcome=Outcome(Ending.SUCCEEDED, usage=usage),
    )  # fmt: skip


def event(kind, number, minutes, **data):
    return Event(kind, f"t-{number}", "x", MIDNIGHT + minutes * MINUTE, f"t-{number}.1", data)


def facts(events, tasks, runs=(), **given):
    return StatsFacts(
        events,
        {t.id: t for t in tasks},
        {r.id: r for r in runs},
        given.get("live", ()),
        given.get("questions", ()),
    )


def test_a_task_counts_once_with_how_it_ended_last():
    events = [
        event(Kind.TASK_SETTLED, 1, 5, state="failed"),
        event(Kind.TASK_REOPENED, 1, 6),
        event(Kind.TASK_SETTLED, 1, 10, state="done"),
        event(Kind.TASK_SETTLED, 2, 11, state="failed"),
        event(Kind.TASK_SETTLED, 3, 12, state="open"),
        event(Kind.TASK_CLOSED, 4, 13),
        event(Kind.WORKTREE_MERGED, 1, 14),
        event("task.landed", 1, 15),
        event(Kind.TASK_SETTLED, 9, 15, state="done"),
    ]
    total = stats_of(facts(events, [task(n) for n in (1, 2, 3, 4)]), SPAN).total
    assert (total.done, total.failed, total.landed) == (2, 1, 1)


def test_work_is_counted_by_day_agent_coder_and_project():
    runs = [run(1), run(2, BOB, start=MIDNIGHT + DAY, minutes=30, usd=0.25)]
    events = [event(Kind.RUN_ENDED, 1, 10), event(Kind.RUN_ENDED, 2, 24 * 60 + 30)]
    stats = stats_of(facts(events, [task(1), task(2, project="/site")], runs), SPAN)
    assert (stats.total.cost, stats.total.tokens, stats.total.runs) == (750_000, 220, 2)
    assert stats.total.worked == 40 * MINUTE
    assert [(d.name, d.cost) for d in stats.days] == [
        ("2024-10-05", 250_000),
        ("2024-10-04", 500_000),
    ]
    assert {a.name: a.worked for a in stats.agents} == {
        "reviewer": 10 * MINUTE,
        "codex": 30 * MINUTE,
    }
    assert {c.name for c in stats.coders} == {"claude", "codex"}
    assert {p.name: p.runs for p in stats.projects} == {"/shop": 1, "/site": 1}


def test_only_the_part_of_a_run_or_a_wait_that_is_in_the_time_counts():
    early = run(1, start=MIDNIGHT - 60 * MINUTE, minutes=70)
    live = replace(early, id="t-2.1", task="t-2", ended_at=0, outcome=None)
    asked = Message(
        "m-1", 1, "t-1", "x", MessageKind.QUESTION, "?", MessageState.CLOSED,
        MIDNIGHT - 5 * MINUTE, receipt=Receipt(closed_at=MIDNIGHT + 5 * MINUTE),
    )  # fmt: skip
    still = replace(asked, id="m-2", task="t-2", receipt=Receipt(closed_at=0))
    tasks = [task(1), task(2, TaskState.RUNNING)]
    given = facts(
        [event(Kind.RUN_ENDED, 1, 10)], tasks, [early], live=[live], questions=[asked, still]
    )
    total = stats_of(given, SPAN).total
    assert total.worked == 10 * MINUTE + 2 * DAY
    assert total.waited == 5 * MINUTE + 2 * DAY


def test_a_review_waits_for_a_person():
    events = [
        event(Kind.TASK_SETTLED, 1, 0, state="review"),
        event(Kind.TASK_CLOSED, 1, 20),
        event(Kind.TASK_SETTLED, 2, 30, state="review"),
    ]
    old = task(3, TaskState.REVIEW, ended_at=MIDNIGHT - DAY)
    tasks = [task(1), task(2, TaskState.REVIEW, ended_at=MIDNIGHT + 30 * MINUTE), old]
    total = stats_of(facts(events, tasks), SPAN).total
    assert total.waited == 20 * MINUTE + (2 * DAY - 30 * MINUTE) + 2 * DAY


def test_a_day_begins_where_whoever_asks_lives():
    late = [event(Kind.TASK_SETTLED, 1, -30 + 24 * 60, state="done")]
    for east, day in ((0, "2024-10-04"), (60, "2024-10-05"), (-600, "2024-10-04")):
        (row,) = stats_of(facts(late, [task(1)]), SPAN._replace(east=east)).days
        assert row.name == day


def test_every_count_is_a_number_also_of_one_task_alone():
    stats = stats_of(facts([event(Kind.TASK_SETTLED, 1, 5, state="done")], [task(1)]), SPAN)
    counts = [(type(row.done), type(row.failed)) for row in (stats.total, *stats.days)]
    assert counts == [(int, int)] * 2
