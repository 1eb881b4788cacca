"""Limits that really stop: money, tokens, minutes; silence; a credential that met its limit."""

from __future__ import annotations

import json

from fleet.domain.task import Budget
from tests.wait import until


def questions(supervised) -> list:
    return json.loads(supervised.type("questions", "--json").stdout)["data"]


def over(supervised, task: str) -> None:
    """Wait until its first run has ended, and it is open again."""
    until(lambda: supervised.run(task, 1).outcome if supervised.store.runs(task) else None)
    assert supervised.state(task) == "open"


def test_a_run_that_spends_its_money_stops_and_asks(supervised):
    script = ("usage 10 5 0.30", "sleep 1", "usage 10 5 0.30", "sleep 30", "say Never.")
    task = supervised.add(*script, budget=Budget(cost=500_000))
    supervised.start()
    over(supervised, task)
    assert supervised.endings(task) == ["over_budget"]
    (asked,) = questions(supervised)
    assert asked["text"] == "The task has reached its budget. It has cost $0.60 of $0.50. Continue?"
    assert "Never." not in supervised.transcript(task)


def test_answered_it_goes_on_with_as_much_again(supervised):
    task = supervised.add("usage 900 200", "sleep 2", "say Bye.", budget=Budget(tokens=1000))
    supervised.start()
    over(supervised, task)
    assert supervised.type("answer", task, "1").returncode == 0
    supervised.wait(task)
    assert supervised.endings(task) == ["over_budget", "succeeded"]


def test_a_run_that_goes_on_is_stopped_by_a_cap_that_a_person_sets(supervised):
    task = supervised.add("usage 10 5 0.30", "sleep 60", "say Never.")
    supervised.start()
    until(lambda: supervised.store.progress([f"{task}.1"]))
    assert supervised.type("edit", task, "--budget", "$0.20").returncode == 0
    over(supervised, task)
    assert supervised.endings(task) == ["over_budget"]
    assert "It has cost $0.30 of $0.20." in questions(supervised)[0]["text"]


def test_minutes_count_over_all_runs(supervised):
    task = supervised.add("sleep 30", budget=Budget(seconds=2))
    supervised.start()
    over(supervised, task)
    assert "It has worked 0 of 0.0333333 minutes." in supervised.run(task).outcome.detail


def test_a_run_that_goes_silent_is_ended_but_not_while_a_tool_runs(supervised):
    silent = supervised.add("say Hm.", "sleep 60", attempts=1)
    busy = supervised.add("say Hm.", "run sleep 4", "say Done.")
    supervised.start(FLEET_RUN_STALL_LIMIT="2")
    supervised.wait(silent, state="failed")
    supervised.wait(busy)
    assert supervised.endings(silent) == ["stalled"]
    assert "with no tool running" in supervised.run(silent).outcome.detail


def test_a_rate_limit_parks_what_uses_that_credential_alone(supervised):
    supervised.home.mkdir(exist_ok=True)
    agents = "agents: {shell: {coder: command, command: [echo, hi]}}\n"
    (supervised.home / "config.yaml").write_text(agents)
    first, second = supervised.add("limit 4", "say Done."), supervised.add("say Done.")
    supervised.start("--max", "1")
    over(supervised, first)
    other = supervised.add("hi", agent="shell")
    supervised.wait(other)
    assert supervised.state(second) == "open"
    shown = supervised.type("show", second).stdout
    assert "The credential scripted is rate-limited" in shown
    supervised.wait(first, second)
    assert supervised.endings(first) == ["rate_limited", "succeeded"]
    assert supervised.task(first).tally.failures == 0
