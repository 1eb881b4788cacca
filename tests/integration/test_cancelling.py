"""What is asked of a run is recorded, carried out by its supervisor, and confirmed."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from fleet.domain.run import Wanted
from fleet.ports import Put
from tests.contract.launching import is_alive
from tests.wait import until


def test_a_running_task_is_cancelled_by_its_supervisor_and_the_command_waits_for_it(supervised):
    task = supervised.add("say begun", "spawn 60", "sleep 60")
    supervised.start()
    supervised.heard(task, "begun")
    until(lambda: len(supervised.strays()) == 2)
    done = supervised.type("cancel", task)
    assert done.returncode == 0, done.stderr
    assert supervised.state(task) == "cancelled"
    assert supervised.endings(task) == ["cancelled"]
    assert supervised.strays() == []
    assert Path(supervised.run(task).workspace.path).is_dir()  # its work is kept


def test_a_running_task_is_cancelled_by_the_command_itself_when_no_supervisor_runs(supervised):
    task, other = supervised.add("say begun", "sleep 60"), supervised.add("say begun", "sleep 60")
    supervised.start()
    for one in (task, other):
        supervised.heard(one, "begun")
    supervised.end()
    done = supervised.type("cancel", task)
    assert done.returncode == 0, done.stderr
    assert supervised.endings(task) == ["cancelled"]
    assert supervised.endings(other) == ["running"]
    assert is_alive(supervised.coder(f"{other}.1"))


def test_a_coder_that_does_not_want_to_end_is_killed_after_its_grace(supervised):
    task = supervised.add("ignore-term", "say deaf", "sleep 60")
    supervised.start(FLEET_RUN_GRACE="0.5")
    supervised.heard(task, "deaf")
    begun = time.monotonic()
    assert supervised.type("cancel", task).returncode == 0
    assert 0.5 <= time.monotonic() - begun < 30
    assert supervised.run(task).outcome.exit_code == -signal.SIGKILL
    assert supervised.endings(task) == ["cancelled"]


def test_a_task_is_cancelled_while_its_workspace_is_being_made(supervised):
    (supervised.home / "config.yaml").write_text('workspace:\n  setup: ["sleep 0.8"]\n')
    task = supervised.add("say begun")
    supervised.start()
    until(lambda: supervised.store.runs(task) and supervised.run(task).workspace)
    assert supervised.type("cancel", task).returncode == 0
    assert supervised.endings(task) == ["cancelled"]
    assert supervised.texts(task) == []
    assert supervised.type("retry", task).returncode == 0
    supervised.wait(task)
    assert supervised.texts(task) == ["begun"]


def test_a_cancelled_task_that_is_retried_goes_on_in_its_workspace(supervised):
    task = supervised.add("write a.txt x", "say begun", "sleep 1", "commit all")
    supervised.start()
    supervised.heard(task, "begun")
    supervised.type("cancel", task)
    supervised.type("retry", task)
    supervised.wait(task)
    assert supervised.endings(task) == ["cancelled", "succeeded"]
    assert supervised.commits(f"fleet/{task}") == ["first", "all"]


def test_settings_that_became_wrong_do_not_keep_a_run_from_being_ended(supervised):
    task = supervised.add("say begun", "sleep 60")
    supervised.start()
    supervised.heard(task, "begun")
    supervised.end()
    (supervised.repo / "fleet.yaml").write_text("nonsense: [\n")
    elsewhere = supervised.place / "elsewhere"
    elsewhere.mkdir()
    done = supervised.type("cancel", task, cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    assert supervised.endings(task) == ["cancelled"]
    assert supervised.strays() == []


def test_what_was_asked_while_the_supervisor_was_dead_is_done_by_the_next(supervised):
    task = supervised.add("say begun", "sleep 60")
    supervised.start()
    run = supervised.running(task)
    supervised.heard(task, "begun")
    supervisor = supervised.supervisor
    os.kill(supervisor.pid, signal.SIGSTOP)  # it holds its lock, and does nothing
    current = supervised.store.run(run.id)
    supervised.store.commit([Put(replace(current, wanted=Wanted.CANCEL))], [])
    supervised.end()
    supervised.start()
    supervised.wait(task, state="cancelled")
    assert supervised.strays() == []
