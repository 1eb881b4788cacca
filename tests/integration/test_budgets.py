"""Limits that really stop: money, tokens, minutes; silence; a credential that met its limit."""

from __future__ import annotations

import json

from contract.launching import until
from fleet.domain.task import Budget


def questions(yard) -> list:
    return json.loads(yard.type("questions", "--json").stdout)["data"]


def over(yard, task: str) -> None:
    """Wait until its first run has ended, and it is open again."""
    until(lambda: yard.run(task, 1).outcome if yard.store.runs(task) else None, timeout=20)
    assert yard.state(task) == "open"


def test_a_run_that_spends_its_money_stops_and_asks(yard):
    script = ("usage 10 5 0.30", "sleep 1", "usage 10 5 0.30", "sleep 30", "say Never.")
    task = yard.add(*script, budget=Budget(cost=500_000))
    yard.start()
    over(yard, task)
    assert yard.endings(task) == ["over_budget"]
    (asked,) = questions(yard)
    assert asked["text"] == "It has cost $0.60 of $0.50. Go on?"
    assert "Never." not in yard.transcript(task)


def test_answered_it_goes_on_with_as_much_again(yard):
    task = yard.add("usage 900 200", "sleep 2", "say Bye.", budget=Budget(tokens=1000))
    yard.start()
    over(yard, task)
    assert yard.type("answer", task, "1").returncode == 0
    yard.wait(task)
    assert yard.endings(task) == ["over_budget", "succeeded"]


def test_minutes_count_over_all_runs(yard):
    task = yard.add("sleep 30", budget=Budget(seconds=2))
    yard.start()
    over(yard, task)
    assert "It has worked 0 of 0.0333333 minutes." in yard.run(task).outcome.detail


def test_a_run_that_goes_silent_is_ended_but_not_while_a_tool_runs(yard):
    silent = yard.add("say Hm.", "sleep 60", attempts=1)
    busy = yard.add("say Hm.", "run sleep 4", "say Done.")
    yard.start(FLEET_RUN_STALL_LIMIT="2")
    yard.wait(silent, state="failed")
    yard.wait(busy)
    assert yard.endings(silent) == ["stalled"]
    assert "with no tool running" in yard.run(silent).outcome.detail


def test_a_rate_limit_parks_what_uses_that_credential_alone(yard):
    yard.home.mkdir(exist_ok=True)
    agents = "agents: {shell: {coder: command, command: [echo, hi]}}\n"
    (yard.home / "config.yaml").write_text(agents)
    first, second = yard.add("limit 4", "say Done."), yard.add("say Done.")
    yard.start("--max", "1")
    over(yard, first)
    other = yard.add("hi", agent="shell")
    yard.wait(other)
    assert yard.state(second) == "open"
    shown = yard.type("show", second).stdout
    assert "The credential scripted met a limit" in shown
    yard.wait(first, second)
    assert yard.endings(first) == ["rate_limited", "succeeded"]
    assert yard.task(first).tally.failures == 0
