"""What can be seen of a landing: its place, the merges it is tested in, its gate, and why it landed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.integration.supervised_home import FLEET
from tests.integration.test_landing import done, land, landed, main_branch
from tests.wait import until


def rows(supervised, *words: str):
    return json.loads(supervised.type("land", *words, "--json").stdout)["data"]


def test_a_landing_shows_the_candidates_that_test_it_and_then_its_evidence(supervised, tmp_path):
    one, two = supervised.add("write a.txt x"), supervised.add("write b.txt x")
    go = tmp_path / "go"
    done(supervised, one, two, FLEET_LAND_GATE=f"until test -e {go}; do sleep 0.05; done")
    land(supervised, one, two)
    until(lambda: [len(r["candidates"]) for r in rows(supervised, "list")] == [2, 1])
    first, second = rows(supervised, "list")
    assert (first["ahead"], second["ahead"]) == (0, 1)
    assert first["gate"] == second["gate"] == "testing"
    assert [c["tasks"] for c in first["candidates"]] == [[one], [one, two]]
    (candidate,) = second["candidates"]
    assert candidate["members"] == [first["id"], second["id"]]
    assert candidate["began"]
    (train,) = rows(supervised, "trains")
    assert train["onto"] == main_branch(supervised)
    assert (train["waiting"], len(train["candidates"])) == (2, 2)
    assert f"{one} + {two} (testing" in land(supervised, "trains")
    go.write_text("")
    landed(supervised, one, two)
    until(lambda: rows(supervised, "trains")[0]["candidates"] == [])
    shown = rows(supervised, "show", two)
    assert shown["gate"] == "passed"
    assert shown["evidence"]["rule"] == "It passed the gate."
    assert shown["evidence"]["gate"].startswith("until test")
    assert shown["evidence"]["before"] == rows(supervised, "show", one)["commit"]
    assert "It passed the gate." in land(supervised, "show", two)


def test_work_that_had_passed_before_says_so(supervised):
    task = supervised.add("write a.txt x", gate="test -e a.txt")
    done(supervised, task)
    land(supervised, task, "--now")
    shown = rows(supervised, "show", task)
    assert shown["evidence"]["rule"] == "Its files had passed the gate before."


def test_a_gate_that_fails_and_then_passes_is_named_flaky(supervised, tmp_path):
    gate = f"test -e {tmp_path}/once || {{ touch {tmp_path}/once; exit 1; }}"
    task = supervised.add("write a.txt x")
    done(supervised, task, FLEET_LAND_GATE=gate)
    land(supervised, task)
    landed(supervised, task)
    assert rows(supervised, "show", task)["evidence"]["rule"].endswith("the gate is flaky.")
    assert rows(supervised, "trains")[0]["flaky"] == gate
    assert "is flaky: it failed and then passed" in supervised.said()


def test_branches_that_would_conflict_are_foretold_while_agents_still_work(supervised):
    one = supervised.add("write f.txt one", "commit One")
    two = supervised.add("write f.txt two", "commit Two", "sleep 60")
    supervised.start()
    supervised.wait(one)
    supervised.running(two)
    until(lambda: Path(supervised.run(two).workspace.path, "f.txt").exists())
    until(lambda: any(row["rivals"] for row in rows(supervised, "forecast")))
    by_task = {row["task"]: row for row in rows(supervised, "forecast")}
    assert by_task[one]["rivals"] == [two]
    assert by_task[two]["rivals"] == [one]
    assert by_task[one]["ready"]
    assert not by_task[two]["ready"]
    land(supervised, one, "--now")
    until(lambda: [r["conflicts"] for r in rows(supervised, "forecast")] == [["f.txt"]])


def test_what_a_gate_prints_is_followed_while_it_runs(supervised, tmp_path):
    task, go = supervised.add("write a.txt x"), tmp_path / "go"
    gate = f"echo collected; until test -e {go}; do sleep 0.05; done; echo passed"
    done(supervised, task, FLEET_LAND_GATE=gate)
    land(supervised, task)
    words = [FLEET, "land", "show", task, "--follow"]
    given = {"cwd": supervised.repo, "env": supervised.env, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **given) as following:
        assert following.stdout.readline().startswith(f"The gate tests {task} (")
        assert following.stdout.readline() == "collected\n"
        go.write_text("")
        rest = following.stdout.read()
    commit = supervised.task(task).tally.landed[:12]
    assert rest == f"passed\n{task} landed on {main_branch(supervised)} ({commit}).\n"
    assert land(supervised, "show", task, "--follow").startswith("collected\npassed\n")


def test_what_came_back_shows_what_its_gate_printed(supervised):
    task = supervised.add("write a.txt x", "end", "sleep 60")
    done(supervised, task, FLEET_LAND_GATE="echo too many prices; false")
    land(supervised, task)
    until(lambda: rows(supervised, "show", task)["state"] == "returned")
    shown = rows(supervised, "show", task)
    assert (shown["gate"], shown["evidence"]["output"]) == ("failed", "too many prices")
    assert "too many prices" in land(supervised, "show", task, "--follow")
