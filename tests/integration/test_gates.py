"""`--gate`: a task is done only when a command passes in its workspace."""

from __future__ import annotations

import json
import os
import signal

from tests.wait import until


def test_work_that_passes_its_gate_is_done(supervised):
    task = supervised.add("write out.txt right", gate="grep right out.txt")
    supervised.start()
    supervised.wait(task)
    assert supervised.endings(task) == ["succeeded"]


def test_work_that_does_not_pass_is_tried_again_and_told_why(supervised):
    gate = "echo looking; grep right out.txt || { echo 'out.txt is wrong' >&2; exit 3; }"
    task = supervised.add("fail 0 never", "append out.txt wrong", gate=gate, attempts=2)
    supervised.start()
    supervised.wait(task, state="failed")
    assert supervised.endings(task) == ["failed", "failed"]
    detail = supervised.run(task, 1).outcome.detail
    assert "The gate did not pass" in detail
    assert detail.endswith("exit status 3.\nlooking\nout.txt is wrong")


def test_the_settings_may_name_a_gate_for_every_task(supervised):
    task = supervised.add("say Done.", attempts=1)
    supervised.start(FLEET_RUN_GATE="exit 1")
    supervised.wait(task, state="failed")


def test_a_gate_that_takes_too_long_does_not_pass(supervised):
    task = supervised.add("say Done.", gate="sleep 60", attempts=1)
    supervised.start(FLEET_RUN_GATE_LIMIT="1")
    supervised.wait(task, state="failed")
    assert "took more than 1 s" in supervised.run(task).outcome.detail
    until(lambda: not supervised.strays())


def test_a_gate_outlives_the_supervisor_and_runs_once(supervised):
    task = supervised.add("say Done.", gate="echo gate >> ../gates; sleep 2")
    supervised.start()
    marks = supervised.home / "worktrees"
    until(lambda: list(marks.rglob("gates")), why=supervised.said)
    supervised.end(signal.SIGKILL)
    supervised.start()
    supervised.wait(task)
    (found,) = marks.rglob("gates")
    assert found.read_text() == "gate\n"


def test_the_time_of_a_gate_counts_from_its_launch_also_under_the_next_supervisor(supervised):
    task = supervised.add("say Done.", gate="sleep 60", attempts=1)
    keeper = supervised.home / "runs" / "t-1.1.gate" / "keeper.json"
    supervised.start(FLEET_RUN_GATE_LIMIT="500")
    until(keeper.exists, why=supervised.said)
    supervised.end(signal.SIGKILL)
    record = json.loads(keeper.read_text())
    keeper.write_text(json.dumps(record | {"began": record["began"] - 1000}))
    supervised.start(FLEET_RUN_GATE_LIMIT="500")
    supervised.wait(task, state="failed")
    assert "took more than 500 s" in supervised.run(task).outcome.detail


def test_a_run_whose_gates_keeper_vanished_keeps_its_work_for_the_next(supervised):
    task = supervised.add(
        "write out.txt right", gate="test -e ../again || { touch ../again; sleep 60; }"
    )
    supervised.start()
    keeper = supervised.home / "runs" / "t-1.1.gate" / "keeper.json"
    until(lambda: list((supervised.home / "worktrees").rglob("again")), why=supervised.said)
    os.kill(json.loads(keeper.read_text())["pid"], signal.SIGKILL)
    supervised.wait(task)
    assert supervised.endings(task) == ["lost", "succeeded"]
    lost = supervised.run(task, 1).outcome
    assert lost.checkpoint == supervised.run(task, 2).outcome.checkpoint
    assert lost.checkpoint.commit


def test_cancelling_ends_the_gate(supervised):
    task = supervised.add("say Done.", gate="sleep 60")
    supervised.start()
    until((supervised.home / "runs" / "t-1.1.gate" / "keeper.json").exists, why=supervised.said)
    cancelled = supervised.type("cancel", task)
    assert cancelled.returncode == 0, cancelled.stderr
    assert supervised.endings(task) == ["cancelled"]
    until(lambda: not supervised.strays())


def test_a_gate_that_an_earlier_supervisor_began_ends_with_its_run(supervised):
    task = supervised.add("say Done.", gate="sleep 60")
    supervised.start()
    until((supervised.home / "runs" / "t-1.1.gate" / "keeper.json").exists, why=supervised.said)
    supervised.end(signal.SIGKILL)
    assert supervised.type("run", "stop", "--agents").returncode == 0
    until(lambda: not supervised.strays())
    assert supervised.endings(task) == ["yielded"]
