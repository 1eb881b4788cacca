"""kill -9, here and there: agents go on, nothing is lost, nothing runs twice."""

import os
import signal
import time
from pathlib import Path

import pytest

from contract.launching import is_alive, until
from fleet.adapters.home.home import Home
from fleet.domain.run import Choice
from fleet.domain.task import claim
from fleet.ports import Put

LONG = ("lines 200", "sleep {seconds}", "lines 50", "write done.txt x", "commit done")


def long(seconds):
    return [line.format(seconds=seconds) for line in LONG]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_agents_go_on_without_their_supervisor_and_the_next_one_takes_them_up(yard, number):
    task = yard.add(*long(1.2))
    yard.start()
    run = yard.running(task)
    yard.heard(task, "line 200")
    keeper, coder = yard.keeper(run.id), yard.coder(run.id)
    status = yard.end(number)
    assert status == (-9 if number == signal.SIGKILL else 0)
    assert is_alive(keeper)
    assert is_alive(coder)
    assert yard.state(task) == "running"
    yard.start()
    yard.wait(task)
    assert [r.id for r in yard.store.runs(task)] == [run.id]
    assert yard.texts(task) == [f"line {n + 1}" for n in (*range(200), *range(50))]
    assert yard.run(task).holder != run.holder
    assert yard.commits(f"fleet/{task}") == ["first", "done"]
    assert yard.endings(task) == ["succeeded"]


def test_a_run_that_ended_while_nobody_looked_is_settled_with_every_line(yard):
    task = yard.add("lines 100", "sleep 0.4", "lines 5", "usage 70 7")
    yard.start()
    yard.heard(task, "line 100")
    yard.end()
    until(lambda: '"result"' in yard.transcript(task))
    until(lambda: not yard.strays())
    yard.start("--once")
    assert yard.supervisor.wait(20) == 0
    assert yard.endings(task) == ["succeeded"]
    assert yard.run(task).outcome.usage.input == 70
    assert len(yard.texts(task)) == 105


def test_one_that_was_claimed_without_a_place_gets_one_that_is_written_down_first(yard):
    """As a supervisor leaves it that could not look at the repository then, or an older one."""
    task = yard.task(yard.add("say Hi."))
    host = yard.client.app.home.host_id()
    choice = Choice("scripted", "scripted")
    mine, run = claim(task, choice, host=host, holder="gone", slots=(), at=yard.store.now())
    yard.store.commit([Put(mine), Put(run)], [])
    yard.start()
    yard.wait(task.id)
    assert [r.id for r in yard.store.runs(task.id)] == [run.id]
    assert yard.run(task.id).workspace.branch == f"fleet/{task.id}"


def test_a_stop_says_that_agents_go_on(yard):
    task = yard.add("say begun", "sleep 5")
    yard.start()
    yard.heard(task, "begun")
    assert yard.end(signal.SIGTERM) == 0
    assert "Stopped. 1 still run; the next `fleet run` takes them up." in yard.said()


def test_a_second_supervisor_is_refused_and_names_the_first(yard):
    first = yard.start()
    task = yard.add("say begun", "sleep 0.5")
    yard.heard(task, "begun")
    second = yard.type("run")
    assert second.returncode == 1
    assert f"A supervisor runs here already (pid {first.pid})." in second.stderr
    assert (
        yard.type("run", FLEET_HOME=str(yard.place / "other"), FLEET_CODER="nope").returncode == 2
    )
    yard.wait(task)
    assert yard.endings(task) == ["succeeded"]


def test_looking_at_the_tasks_never_keeps_a_supervisor_from_starting(yard):
    home = Home(yard.home)
    with home.alone() as mine:
        assert mine
        assert home.supervisor_pid() == os.getpid()
    lock = yard.home / "supervisor.lock"
    before = lock.read_bytes()
    assert home.supervisor_pid() == 0
    assert lock.read_bytes() == before  # a look leaves no trace


def test_when_the_keeper_is_killed_the_run_is_lost_and_the_next_goes_on_in_its_place(yard):
    task = yard.add(
        "append log one", "commit one", "append log two", "spawn 60", "say halfway", "sleep 1",
        "commit two", attempts=1,
    )  # fmt: skip
    yard.start()
    run = yard.running(task)
    yard.heard(task, "halfway")
    processes = yard.strays()
    assert len(processes) == 2  # the coder, and what it spawned
    os.kill(yard.keeper(run.id), signal.SIGKILL)
    yard.wait(task)
    assert yard.endings(task) == ["lost", "succeeded"]
    assert not any(is_alive(pid) for pid in processes)
    lost, second = yard.store.runs(task)
    assert lost.outcome.detail == "Its keeper vanished."
    assert lost.outcome.gone
    assert second.workspace == lost.workspace
    assert yard.commits(f"fleet/{task}") == ["first", "one", "two"]
    assert Path(lost.workspace.path, "log").read_text() == "one\ntwo\n"
    assert yard.task(task).tally.failures == 0


def test_a_keeper_that_died_while_nobody_looked_is_found_out_later(yard):
    task = yard.add("say begun", "sleep 60")
    yard.start()
    run = yard.running(task)
    yard.heard(task, "begun")
    coder = yard.coder(run.id)
    yard.end()
    os.kill(yard.keeper(run.id), signal.SIGKILL)
    assert is_alive(coder)
    yard.start()
    yard.running(task, 2)
    assert not is_alive(coder)
    assert yard.endings(task)[0] == "lost"


def test_when_the_coder_is_killed_the_run_failed_and_is_tried_again_after_a_pause(yard):
    task = yard.add("say begun", "sleep 60")
    yard.start(FLEET_RUN_BACKOFF="0.5")
    run = yard.running(task)
    yard.heard(task, "begun")
    os.kill(yard.coder(run.id), signal.SIGKILL)
    second = yard.running(task, 2)
    first = yard.run(task, 1)
    assert (str(first.outcome.ending), first.outcome.exit_code) == ("failed", -9)
    assert second.claimed_at - first.ended_at >= 500_000
    assert second.workspace == first.workspace
    assert yard.task(task).tally.failures == 1


def test_a_conversation_that_was_named_but_never_begun_is_not_gone_on_with(yard):
    """The coder is killed after it has said its session, and before it has taken the prompt."""
    task = yard.add("write a.txt x", "commit a")
    memory = yard.client.app.home.task_dir(task) / "scripted.tmp"
    os.mkfifo(memory)  # the scripted coder waits here
    yard.start()
    run = yard.running(task)
    yard.heard(task, '"session"')
    assert '"turn"' not in yard.transcript(task)
    memory.rename(memory.with_name("hidden"))
    os.kill(yard.coder(run.id), signal.SIGKILL)
    yard.wait(task)
    assert yard.endings(task) == ["failed", "succeeded"]
    assert yard.commits(f"fleet/{task}") == ["first", "a"]


def test_a_run_is_started_once_however_the_supervisor_dies_while_starting_it(yard):
    tasks = [yard.add("say begun", f"append log {n}", f"commit {n}") for n in range(3)]
    for delay in (0.05, 0.1, 0.15, 0.2, 0.3):
        yard.start()
        time.sleep(delay)
        yard.end()
    yard.start()
    yard.wait(*tasks)
    for n, task in enumerate(tasks):
        assert yard.endings(task) == ["succeeded"], yard.story(task)
        assert yard.texts(task) == ["begun"]
        assert yard.commits(f"fleet/{task}") == ["first", str(n)]


def test_the_progress_of_an_adopted_run_goes_on_where_it_was(yard):
    task = yard.add("usage 100 1", "lines 3", "sleep 1.5", "usage 200 2", "sleep 60")
    yard.start()
    run = yard.running(task)
    until(lambda: _tokens(yard, run.id) == 100, why=yard.said)
    yard.end()
    yard.start()
    until(lambda: _tokens(yard, run.id) == 300, why=yard.said)


def _tokens(yard, run_id):
    found = yard.store.progress([run_id])
    return found[run_id].usage.input if found else 0


def test_a_run_folder_that_vanished_proves_nothing_about_its_coder(yard):
    """Its workspace is not handed on while the coder may still be at work there."""
    task = yard.add("say begun", "sleep 60")
    yard.start()
    run = yard.running(task)
    yard.heard(task, "begun")
    coder, keeper = yard.coder(run.id), yard.keeper(run.id)
    folder = yard.home / "runs" / run.id
    hidden = folder.with_name("hidden")
    folder.rename(hidden)
    time.sleep(1)
    assert is_alive(coder)
    assert yard.endings(task) == ["running"]
    for pid in (keeper, coder):
        os.kill(pid, signal.SIGKILL)
