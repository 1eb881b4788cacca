"""What the dashboard does with items, views, turns and budgets, typed."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import until


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    yield made
    for agent in made.data("list", "--everywhere"):
        made.type("kill", agent["task"], "--force")


def kinds(scratch, *words: str) -> list[str]:
    return [item["kind"] for item in scratch.data("inbox", *words)]


def test_items_are_listed_put_away_and_listed_again(scratch):
    failed = scratch.add("Tidy up", "--attempts", "1", script="exit 3")
    question = scratch.add("Choose", script="ask Which licence?")
    scratch.work()
    assert kinds(scratch) == ["question", "failed"]
    for width in (80, 120):
        lines = scratch("inbox", env={"COLUMNS": str(width)}).splitlines()
        assert max(map(len, lines)) <= width
        assert "failed" in lines[2]
    assert scratch("inbox", "snooze", question, "--for", "2h").startswith("1 item put away until")
    assert kinds(scratch) == ["failed"]
    item = scratch.data("inbox")[0]["id"]
    assert scratch("inbox", "seen", item).strip() == "1 item put away."
    assert scratch("inbox").strip() == "Nothing needs you."
    assert kinds(scratch, "--snoozed") == ["question", "failed"]
    scratch("inbox", "snooze", question, failed, "--for", "0")
    assert kinds(scratch) == ["question", "failed"]
    assert "t-9" in scratch.fails("inbox", "seen", "t-9", status=2)
    assert "not a time" in scratch.fails("inbox", "snooze", failed, "--for", "soon", status=2)


def test_finished_work_is_listed_where_it_is_asked_for(scratch):
    scratch.add("Say it", script="write a.txt\ncommit A\nsay Done.")
    scratch.work()
    scratch("merge", "t-1")
    assert kinds(scratch) == []
    assert kinds(scratch, "--finished") == ["finished"]
    scratch("inbox", "seen", "t-1")
    assert kinds(scratch, "--finished") == []


def test_a_view_is_saved_replaced_and_removed(scratch):
    assert "fleet view save" in scratch("view")
    scratch("view", "save", "mine", "label:ui", "status:asking")
    scratch("view", "save", "mine", "label:api")
    (row,) = scratch.data("view", "list")
    assert (row["name"], row["words"]) == ("mine", "label:api")
    scratch("view", "remove", "mine")
    assert scratch.data("view") == []
    assert "no view" in scratch.fails("view", "remove", "other", status=2)


def test_what_happened_to_a_task_and_what_its_gate_printed(scratch):
    task = scratch.add("Work", "--gate", "echo 3 tests failed; exit 4", "--attempts", "1", script="say Done.")  # fmt: skip
    scratch.work()
    events = [event["type"] for event in scratch.data("history", task)]
    assert events[0] == "task.added"
    assert "run.claimed" in events
    assert "task.added" in scratch("history", task)
    (gate,) = scratch.data("gates", task)
    assert (gate["code"], gate["output"].strip()) == (4, "3 tests failed")
    text = scratch("gates", task)
    assert "failed with exit status 4" in text
    assert "3 tests failed" in text
    assert "No gate of t-2 has run here." in scratch("gates", scratch.add("Other"))


def test_a_dry_run_adds_nothing(scratch):
    scratch.add("First")
    text = scratch("add", "Second", "--after", "t-1", "--dry-run")
    assert text.startswith("scripted (scripted) would do it.")
    assert "t-1" in text
    assert len(scratch.data("tasks")) == 1
    scratch.fails("add", "--file", "tasks.yaml", "--dry-run", status=2)


def test_a_turn_is_interrupted_and_what_runs_has_its_budget_listed(scratch):
    with scratch.supervisor():
        scratch("create", "seat", "--prompt", "say Hello there")
        until(lambda: scratch.data("list")[0]["doing"] == "waiting", "its turn's end")
        scratch("edit", "t-1", "--budget", "$5")
        (row,) = scratch.data("budgets")
        assert (row["task"], row["cost"]) == ("t-1", 5_000_000)
        assert "of $5.00" in scratch("budgets")
        assert "fleet prompt seat" in scratch("interrupt", "seat")
    assert "run.interrupted" in [event["type"] for event in scratch.data("history", "t-1")]


def test_one_asks_who_one_is(scratch):
    me = scratch.data("whoami")
    assert (me["role"], me["until"]) == ("coordinator", None)
    lines = scratch("whoami").splitlines()
    assert lines[0].split() == ["name", me["name"]]


def test_the_newest_batches_are_listed(scratch):
    assert "fleet best" in scratch("pick")
    scratch("best", "2", "say Done.", "--test", "true")
    (row,) = scratch.data("pick")
    assert row["state"] == "running"
