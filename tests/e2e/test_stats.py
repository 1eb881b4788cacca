"""`fleet stats` counts what a fleet has really done."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import until


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def test_what_was_done_landed_and_failed_is_counted(scratch):
    assert scratch("stats").strip() == "Nothing was done in that time."
    done = scratch.add("Done", script="write a.txt\ncommit A\nsay Done.")
    scratch.add("Failed", "--attempts", "1", script="exit 1")
    scratch.work()
    scratch("merge", done)
    stats = scratch.data("stats", "--day")
    total = stats["total"]
    assert (total["done"], total["failed"], total["landed"], total["runs"]) == (1, 1, 1, 2)
    assert total["worked"] > 0
    assert [row["name"] for row in stats["coders"]] == ["scripted"]
    assert [row["name"] for row in stats["projects"]] == [str(scratch.repo)]
    assert len(stats["days"]) == 1
    for width in (80, 120):
        shown = scratch("stats", env={"COLUMNS": str(width)})
        assert max(map(len, shown.splitlines())) <= width
        assert shown.splitlines()[0].split()[:4] == ["DAY", "DONE", "LANDED", "FAILED"]
        assert shown.splitlines()[1].split()[1:4] == ["1", "1", "1"]


def test_the_time_that_a_question_waited_is_counted(scratch):
    task = scratch.add("Ask")
    question = scratch.ask(task)
    assert scratch.data("stats")["total"]["waited"] > 0
    scratch("answer", question, "That way")
    assert scratch.data("stats")["total"]["waited"] > 0


def test_what_is_older_does_not_count_and_a_wrong_time_is_refused(scratch):
    scratch.add("Done")
    scratch.work()
    assert scratch.data("stats", "--since", "2h")["total"]["done"] == 1
    assert scratch.data("stats", "--since", "0s")["total"]["done"] == 0
    assert "is not a time" in scratch.fails("stats", "--since", "soon", status=2)
    assert "2999-01-01 is in the future" in scratch.fails(
        "stats", "--since", "2999-01-01", status=2
    )
    assert scratch.data("stats", "--since", "99999999d")["total"]["done"] == 1
    assert "cannot be used together" in scratch.fails("stats", "--day", "--week", status=2)


def test_budgets_name_a_limit_that_was_reached(tmp_path):
    scratch = Scratch(tmp_path)
    scratch.add("Turned away", script="limit 3600")
    with scratch.supervisor():
        until(lambda: scratch.data("show", "1")["runs"], "its first run")
        notes = until(lambda: scratch.document("budgets").get("notes"), "the limit is known")
    assert "Nothing that needs credential scripted on host " in notes[0]
    assert notes[0].endswith(": Rate limited.")
