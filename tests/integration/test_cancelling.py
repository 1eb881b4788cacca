"""What is asked of a run is recorded, carried out by its supervisor, and confirmed."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from contract.launching import is_alive, until
from fleet.domain.run import Wanted
from fleet.ports import Put


def test_a_running_task_is_cancelled_by_its_supervisor_and_the_command_waits_for_it(yard):
    task = yard.add("say begun", "spawn 60", "sleep 60")
    yard.start()
    yard.heard(task, "begun")
    until(lambda: len(yard.strays()) == 2)
    done = yard.type("cancel", task)
    assert done.returncode == 0, done.stderr
    assert yard.state(task) == "cancelled"
    assert yard.endings(task) == ["cancelled"]
    assert yard.strays() == []
    assert Path(yard.run(task).workspace.path).is_dir()  # its work is kept


def test_a_running_task_is_cancelled_by_the_command_itself_when_no_supervisor_runs(yard):
    task, other = yard.add("say begun", "sleep 60"), yard.add("say begun", "sleep 60")
    yard.start()
    for one in (task, other):
        yard.heard(one, "begun")
    yard.end()
    done = yard.type("cancel", task)
    assert done.returncode == 0, done.stderr
    assert yard.endings(task) == ["cancelled"]
    assert yard.endings(other) == ["running"]
    assert is_alive(yard.coder(f"{other}.1"))


def test_a_coder_that_does_not_want_to_end_is_killed_after_its_grace(yard):
    task = yard.add("ignore-term", "say deaf", "sleep 60")
    yard.start(FLEET_RUN_GRACE="0.5")
    yard.heard(task, "deaf")
    begun = time.monotonic()
    assert yard.type("cancel", task).returncode == 0
    assert 0.5 <= time.monotonic() - begun < 6
    assert yard.run(task).outcome.exit_code == -signal.SIGKILL
    assert yard.endings(task) == ["cancelled"]


def test_a_task_is_cancelled_while_its_workspace_is_being_made(yard):
    (yard.home / "config.yaml").write_text('workspace:\n  setup: ["sleep 0.8"]\n')
    task = yard.add("say begun")
    yard.start()
    until(lambda: yard.store.runs(task) and yard.run(task).workspace)
    assert yard.type("cancel", task).returncode == 0
    assert yard.endings(task) == ["cancelled"]
    assert yard.texts(task) == []
    assert yard.type("retry", task).returncode == 0
    yard.wait(task)
    assert yard.texts(task) == ["begun"]


def test_a_cancelled_task_that_is_retried_goes_on_in_its_workspace(yard):
    task = yard.add("write a.txt x", "say begun", "sleep 1", "commit all")
    yard.start()
    yard.heard(task, "begun")
    yard.type("cancel", task)
    yard.type("retry", task)
    yard.wait(task)
    assert yard.endings(task) == ["cancelled", "succeeded"]
    assert yard.commits(f"fleet/{task}") == ["first", "all"]


def test_settings_that_became_wrong_do_not_keep_a_run_from_being_ended(yard):
    task = yard.add("say begun", "sleep 60")
    yard.start()
    yard.heard(task, "begun")
    yard.end()
    (yard.repo / "fleet.yaml").write_text("nonsense: [\n")
    elsewhere = yard.place / "elsewhere"
    elsewhere.mkdir()
    done = yard.type("cancel", task, cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    assert yard.endings(task) == ["cancelled"]
    assert yard.strays() == []


def test_what_was_asked_while_the_supervisor_was_dead_is_done_by_the_next(yard):
    task = yard.add("say begun", "sleep 60")
    yard.start()
    run = yard.running(task)
    yard.heard(task, "begun")
    supervisor = yard.supervisor
    os.kill(supervisor.pid, signal.SIGSTOP)  # it holds its lock, and does nothing
    current = yard.store.run(run.id)
    yard.store.commit([Put(replace(current, wanted=Wanted.CANCEL))], [])
    yard.end()
    yard.start()
    yard.wait(task, state="cancelled")
    assert yard.strays() == []
