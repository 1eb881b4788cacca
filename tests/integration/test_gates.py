"""`--gate`: a task is done only when a command passes in its workspace."""

from __future__ import annotations

import json
import os
import signal

from contract.launching import until


def test_work_that_passes_its_gate_is_done(yard):
    task = yard.add("write out.txt right", gate="grep right out.txt")
    yard.start()
    yard.wait(task)
    assert yard.endings(task) == ["succeeded"]


def test_work_that_does_not_pass_is_tried_again_and_told_why(yard):
    gate = "echo looking; grep right out.txt || { echo 'out.txt is wrong' >&2; exit 3; }"
    task = yard.add("fail 0 never", "append out.txt wrong", gate=gate, attempts=2)
    yard.start()
    yard.wait(task, state="failed")
    assert yard.endings(task) == ["failed", "failed"]
    detail = yard.run(task, 1).outcome.detail
    assert "The gate did not pass" in detail
    assert detail.endswith("exit status 3.\nlooking\nout.txt is wrong")


def test_the_settings_may_name_a_gate_for_every_task(yard):
    task = yard.add("say Done.", attempts=1)
    yard.start(FLEET_RUN_GATE="exit 1")
    yard.wait(task, state="failed")


def test_a_gate_that_takes_too_long_does_not_pass(yard):
    task = yard.add("say Done.", gate="sleep 60", attempts=1)
    yard.start(FLEET_RUN_GATE_LIMIT="1")
    yard.wait(task, state="failed")
    assert "took more than 1 s" in yard.run(task).outcome.detail
    until(lambda: not yard.strays())


def test_a_gate_outlives_the_supervisor_and_runs_once(yard):
    task = yard.add("say Done.", gate="echo gate >> ../gates; sleep 2")
    yard.start()
    marks = yard.home / "worktrees"
    until(lambda: list(marks.rglob("gates")), why=yard.said)
    yard.end(signal.SIGKILL)
    yard.start()
    yard.wait(task)
    (found,) = marks.rglob("gates")
    assert found.read_text() == "gate\n"


def test_the_time_of_a_gate_counts_from_its_launch_also_under_the_next_supervisor(yard):
    task = yard.add("say Done.", gate="sleep 60", attempts=1)
    keeper = yard.home / "runs" / "t-1.1.gate" / "keeper.json"
    yard.start(FLEET_RUN_GATE_LIMIT="500")
    until(keeper.exists, why=yard.said)
    yard.end(signal.SIGKILL)
    record = json.loads(keeper.read_text())
    keeper.write_text(json.dumps(record | {"began": record["began"] - 1000}))
    yard.start(FLEET_RUN_GATE_LIMIT="500")
    yard.wait(task, state="failed")
    assert "took more than 500 s" in yard.run(task).outcome.detail


def test_a_run_whose_gates_keeper_vanished_keeps_its_work_for_the_next(yard):
    task = yard.add("write out.txt right", gate="test -e ../again || { touch ../again; sleep 60; }")
    yard.start()
    keeper = yard.home / "runs" / "t-1.1.gate" / "keeper.json"
    until(lambda: list((yard.home / "worktrees").rglob("again")), why=yard.said)
    os.kill(json.loads(keeper.read_text())["pid"], signal.SIGKILL)
    yard.wait(task)
    assert yard.endings(task) == ["lost", "succeeded"]
    lost = yard.run(task, 1).outcome
    assert lost.checkpoint == yard.run(task, 2).outcome.checkpoint
    assert lost.checkpoint.commit


def test_cancelling_ends_the_gate(yard):
    task = yard.add("say Done.", gate="sleep 60")
    yard.start()
    until((yard.home / "runs" / "t-1.1.gate" / "keeper.json").exists, why=yard.said)
    cancelled = yard.type("cancel", task)
    assert cancelled.returncode == 0, cancelled.stderr
    assert yard.endings(task) == ["cancelled"]
    until(lambda: not yard.strays())


def test_a_gate_that_an_earlier_supervisor_began_ends_with_its_run(yard):
    task = yard.add("say Done.", gate="sleep 60")
    yard.start()
    until((yard.home / "runs" / "t-1.1.gate" / "keeper.json").exists, why=yard.said)
    yard.end(signal.SIGKILL)
    assert yard.type("run", "stop", "--agents").returncode == 0
    until(lambda: not yard.strays())
    assert yard.endings(task) == ["yielded"]
