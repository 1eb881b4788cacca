from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.access import Role
from fleet.domain.run import Choice, Ending, Outcome, Usage
from fleet.domain.spending.usage import (
    HOUR,
    MAX_SUMS,
    NO_HOUR,
    REST,
    UsageGroup,
    UsedAmount,
    hour_from,
    saved,
)
from fleet.domain.task import Budget, Limits, Spec
from fleet.operations.insight.usage import ListBudgets, ReportUsage
from fleet.operations.tasks.stats import ShowStats
from fleet.ports import Put


def ended(office, title="Fix", usd=0.25, choice=None, **given):
    task = office.add(title, **given)
    run = office.start(task)
    if choice:
        record = office.store.run(run)
        office.store.commit([Put(replace(record, choice=choice))], [])
    office.clock.advance(60)
    office.end(run, usage=Usage(input=700, output=300, cached=50, usd=usd))
    return task


def test_what_ended_is_added_up_by_each_group(office):
    mine = ended(office, usd=0.5, project="/shop")
    ended(office, usd=0.25, choice=Choice("planner", "codex", "small", "mini"), project="/shop")
    report = office.call(ReportUsage("agent"))
    assert {row.name: row.cost for row in report.rows} == {"scripted": 500_000, "planner": 250_000}
    assert report.total.cost == 750_000
    assert (report.total.runs, report.total.input, report.total.worked) == (2, 1400, 120_000_000)
    assert office.call(ReportUsage("task")).rows[0].name == mine
    assert [row.name for row in office.call(ReportUsage("node")).rows] == ["", "mini"]
    assert [row.name for row in office.call(ReportUsage("team")).rows] == ["local"]
    assert office.call(ReportUsage("model", project="/other")).rows == ()


def test_a_run_counts_once_whoever_else_ends_it_and_the_sum_is_that_of_fleet_stats(office):
    for _ in range(3):
        ended(office)
    outcome = Outcome(Ending.SUCCEEDED, "", usage=Usage(usd=9))
    office.end("t-1.1", usage=outcome.usage)  # a second supervisor, too late
    stats, report = office.call(ShowStats()), office.call(ReportUsage("day"))
    assert report.total.runs == stats.total.runs == 3
    assert report.total.cost == stats.total.cost
    assert report.total.input + report.total.output == stats.total.tokens
    assert [row.name for row in report.rows] == [day.name for day in stats.days]


def test_runs_that_go_on_count_as_far_as_they_are_known(office):
    run = office.start(office.add())
    office.progress(run, usage=Usage(input=10, output=5, usd=0.1))
    report = office.call(ReportUsage("agent"))
    assert (report.live, report.total.cost, report.total.runs) == (1, 100_000, 1)


def test_days_begin_where_the_caller_is(office):
    ended(office)
    at = office.store.now()
    east = 14 * 60 if at // HOUR % 24 >= 10 else -14 * 60  # another day there
    assert (
        office.call(ReportUsage("day")).rows[0].name
        != office.call(ReportUsage("day", east=east)).rows[0].name
    )


def test_another_team_sees_nothing_of_it(office):
    ended(office, team="blue")
    lead = office.person(Role.TEAM_LEAD, "red")
    report = office.call(ReportUsage("task"), lead)
    assert (report.total.runs, report.rows) == (0, ())
    assert office.call(ReportUsage("task")).total.runs == 1


def test_what_ended_before_the_time_does_not_count(office):
    ended(office)
    office.clock.advance(3 * 3600)
    later = ended(office)
    since = office.store.now() - HOUR
    assert [row.name for row in office.call(ReportUsage("task", since=since)).rows] == [later]


def test_a_report_of_a_year_covers_its_last_92_days(office):
    office.clock.advance(400 * 86400)
    report = office.call(ReportUsage(since=1, until=office.store.now()))
    assert report.until - report.since == 92 * 86400 * 1_000_000


def test_an_hour_tells_so_many_apart_and_adds_up_the_rest():
    hour = NO_HOUR
    for number in range(MAX_SUMS + 20):
        hour = hour.plus(
            UsageGroup(f"a{number}", "c", "m", "", "/p"), f"t-{number}", UsedAmount(1, cost=1)
        )
    assert len(hour.tasks) == len(hour.by) == MAX_SUMS + 1
    assert hour.tasks[REST].cost == 20
    assert hour_from({}) == NO_HOUR


def test_what_nodes_saved_is_at_the_price_of_the_rest():
    own = {UsageGroup("a", "c", "m", "mini", "/p"): UsedAmount(1, 800, 200)}
    paid = {UsageGroup("b", "c", "m", "", "/p"): UsedAmount(1, 1500, 500, cost=4000)}
    assert saved(own | paid) == 2000
    assert saved(own) == 0  # there is no price to compare with


def test_the_budget_of_a_running_task_and_what_is_left(office):
    spec = Spec(limits=Limits(budget=Budget(cost=1_000_000)))
    task = office.add("Dear", spec=spec)
    office.progress(office.start(task), usage=Usage(input=10, usd=0.4))
    office.start(office.add("Free"))
    dear, free = office.call(ListBudgets())
    assert (dear.task, dear.own, dear.cost, dear.cost_spent) == (task, True, 1_000_000, 400_000)
    assert (free.own, free.cost) == (False, 0)


@pytest.mark.parametrize("by", ["day", "hour"])
def test_days_and_hours_are_in_their_order(office, by):
    ended(office, usd=9)
    office.clock.advance(26 * 3600)
    ended(office, usd=1)
    rows = office.call(ReportUsage(by)).rows
    assert [row.cost for row in rows] == [9_000_000, 1_000_000]
