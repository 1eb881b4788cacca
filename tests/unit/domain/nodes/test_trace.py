from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from fleet.domain.errors import BadInput
from fleet.domain.nodes.trace import (
    Times,
    TokenCounts,
    Trace,
    TraceFilter,
    TraceSource,
    chosen,
    read,
    since,
    written,
)

NOW = datetime(2026, 11, 15, 14, 0, tzinfo=UTC)
HOUR = 3_600_000_000
NOON = int(datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp() * 1_000_000)


def line(**given) -> str:
    return json.dumps({"at": 5, "agent": "planner", "node": "mini", "prompt_tokens": 7} | given)


def test_a_line_is_read_and_what_it_does_not_say_is_nothing():
    trace = read(line(why={"failed": ["laptop: no answer"], "error": "late"}))
    assert (trace.at, trace.agent, trace.node) == (5, "planner", "mini")
    assert trace.tokens == TokenCounts(7, 0, 0)
    assert (trace.cost, trace.tried, trace.error) == (None, ("laptop: no answer",), "late")
    assert trace.estimates == ()


def test_what_is_written_is_read_again():
    trace = Trace(
        at=5, agent="planner", session="s", model="heavy", wire="openai", node="mini",
        upstream="qwen", tokens=TokenCounts(7, 3, 2), times=Times(0.25, 0.5, 1.5), cost=0.01,
        retries=1, outcome="ok", status=200, why={"failed": ["laptop: no answer"]},
    )  # fmt: skip
    assert read(written(trace)) == trace
    assert read(written(Trace(at=5))) == Trace(at=5)


def test_a_line_that_an_earlier_release_wrote_is_read():
    """Its names and their order are what other programs read, too: they stay."""
    old = (
        '{"at": 5, "agent": "planner", "session": "s", "model": "heavy", "wire": "openai", '
        '"node": "mini", "upstream": "qwen", "prompt_tokens": 7, "output_tokens": 3, '
        '"cached_tokens": 2, "wait": 0.25, "ttft": 0.5, "total": 1.5, "cost": null, "retries": 0, '
        '"outcome": "ok", "status": 200, "why": {}}'
    )
    trace = read(old)
    assert (trace.tokens, trace.times) == (TokenCounts(7, 3, 2), Times(0.25, 0.5, 1.5))
    assert written(trace) == old


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '"x"', '{"agent": "planner"}', '{"at": "now"}', b"\xff\xfe"]
)
def test_what_is_no_trace_is_passed_over(text):
    assert read(text) is None


@pytest.mark.parametrize(
    "wrong",
    [{"agent": 7}, {"why": "x"}, {"why": {"estimates": "x", "failed": 3}}, {"ttft": "soon"}],
)
def test_values_of_another_kind_are_taken_for_nothing(wrong):
    trace = read(line(**wrong))
    assert trace is not None
    assert (trace.estimates, trace.tried, trace.times.first) == ((), (), 0.0)


def test_the_estimates_have_the_chosen_node_first_and_add_up():
    rows = [
        {"node": "laptop", "wait": 9, "load": 1, "prefill": 1, "decode": 1, "cached": 0},
        {"node": "mini", "wait": 0, "load": 0, "prefill": 1, "decode": 2.5, "cached": 40},
    ]
    found = read(line(why={"estimates": [*rows, "x"]})).estimates
    assert [(each.node, each.total, each.cached) for each in found] == [
        ("mini", 3.5, 40),
        ("laptop", 12.0, 0),
    ]


def test_only_what_is_wanted_is_chosen():
    lines = [line(), line(agent="reviewer"), line(node="laptop"), line(at=9), "torn"]
    assert len(list(chosen(lines, TraceFilter()))) == 4
    assert [t.at for t in chosen(lines, TraceFilter("planner", "mini", 6))] == [9]


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("90m", 1.5),
        ("2h", 2),
        ("1.5h", 1.5),
        ("1d", 24),
        ("7200s", 2),
        ("12:00", 2),
        ("12:00:00", 2),
        ("15:00", 23),  # of yesterday
        ("2026-11-15T12:00", 2),
        ("2026-11-15 12:00", 2),
        ("2026-11-15T13:00+01:00", 2),
        ("2026-11-15", 14),
    ],
)
def test_a_moment_is_said_in_many_ways(text, hours):
    assert since(text, NOW) == int((NOW - timedelta(hours=hours)).timestamp() * 1_000_000)


def test_a_moment_without_a_zone_is_one_of_here():
    here = NOW.astimezone(timezone(timedelta(hours=2)))
    assert since("14:00", here) == NOON
    assert since("2026-11-15T14:00", here) == NOON


def test_longer_ago_than_there_was_time_is_from_the_beginning():
    assert since("99999999h", NOW) == 0


@pytest.mark.parametrize("number", ["1e999", "NaN", "-1e999", "1" + "0" * 30, '"x"', "null"])
def test_a_number_that_is_none_is_read_as_zero(number):
    names = ("wait", "ttft", "total", "prompt_tokens", "retries", "status")
    held = ", ".join(f'"{name}": {number}' for name in names)
    found = read(f'{{"at": 5, {held}, "why": {{"estimates": [{{"wait": {number}}}]}}}}')
    assert found is not None
    assert (found.times, found.tokens, found.retries) == ((0, 0, 0), (0, 0, 0), 0)
    assert found.estimates[0].total == 0


@pytest.mark.parametrize("at", ["-1", "1" + "0" * 30, "1.5", "NaN"])
def test_what_happened_at_no_time_is_no_trace(at):
    assert read(f'{{"at": {at}}}') is None


@pytest.mark.parametrize("text", ["soon", "-2h", "25:00", "2026-13-01", "", "5 m"])
def test_what_is_no_moment_is_refused_with_the_ways_to_say_one(text):
    with pytest.raises(BadInput) as caught:
        since(text, NOW)
    assert "15m" in caught.value.fix


def test_traces_of_one_project_are_told_from_those_of_another():
    traces = [Trace(5, source=TraceSource("t-1.1", folder)) for folder in ("/shop", "/blog", "")]
    lines = [written(trace) for trace in traces]
    assert [t.source for t in chosen(lines, TraceFilter(project="/shop"))] == [
        TraceSource("t-1.1", "/shop")
    ]
    assert len(list(chosen(lines, TraceFilter()))) == 3
