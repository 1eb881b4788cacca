"""kill -9, here and there: agents go on, nothing is lost, nothing runs twice."""

import os
import signal
import time
from pathlib import Path

import pytest

from fleet.adapters.home.home import Home
from fleet.domain.run import Choice
from fleet.domain.task import claim
from fleet.ports import Put
from tests.contract.launching import is_alive
from tests.wait import LIMIT, until

LONG = ("lines 200", "sleep {seconds}", "lines 50", "write done.txt x", "commit done")


def long(seconds):
    return [line.format(seconds=seconds) for line in LONG]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_agents_go_on_without_their_supervisor_and_the_next_one_takes_them_up(supervised, number):
    task = supervised.add(*long(1.2))
    supervised.start()
    run = supervised.running(task)
    supervised.heard(task, "line 200")
    keeper, coder = supervised.keeper(run.id), supervised.coder(run.id)
    status = supervised.end(number)
    assert status == (-9 if number == signal.SIGKILL else 0)
    assert is_alive(keeper)
    assert is_alive(coder)
    assert supervised.state(task) == "running"
    supervised.start()
    supervised.wait(task)
    assert [r.id for r in supervised.store.runs(task)] == [run.id]
    assert supervised.texts(task) == [f"line {n + 1}" for n in (*range(200), *range(50))]
    assert supervised.run(task).holder != run.holder
    assert supervised.commits(f"fleet/{task}") == ["first", "done"]
    assert supervised.endings(task) == ["succeeded"]


def test_a_run_that_ended_while_nobody_looked_is_settled_with_every_line(supervised):
    task = supervised.add("lines 100", "sleep 0.4", "lines 5", "usage 70 7")
    supervised.start()
    supervised.heard(task, "line 100")
    supervised.end()
    until(lambda: '"result"' in supervised.transcript(task))
    until(lambda: not supervised.strays())
    supervised.start("--once")
    assert supervised.supervisor.wait(LIMIT) == 0
    assert supervised.endings(task) == ["succeeded"]
    assert supervised.run(task).outcome.usage.input == 70
    assert len(supervised.texts(task)) == 105


def test_one_that_was_claimed_without_a_place_gets_one_that_is_written_down_first(supervised):
    """As a supervisor leaves it that could not look at the repository then, or an older one."""
    task = supervised.task(supervised.add("say Hi."))
    host = supervised.client.app.home.host_id()
    choice = Choice("scripted", "scripted")
    mine, run = claim(task, choice, host=host, holder="gone", slots=(), at=supervised.store.now())
    supervised.store.commit([Put(mine), Put(run)], [])
    supervised.start()
    supervised.wait(task.id)
    assert [r.id for r in supervised.store.runs(task.id)] == [run.id]
    assert supervised.run(task.id).workspace.branch == f"fleet/{task.id}"


def test_a_stop_says_that_agents_go_on(supervised):
    task = supervised.add("say begun", "sleep 5")
    supervised.start()
    supervised.heard(task, "begun")
    assert supervised.end(signal.SIGTERM) == 0
    assert "Stopped. 1 still running; the next `fleet run` takes over." in supervised.said()


def test_a_second_supervisor_is_refused_and_names_the_first(supervised):
    first = supervised.start()
    task = supervised.add("say begun", "sleep 0.5")
    supervised.heard(task, "begun")
    second = supervised.type("run")
    assert second.returncode == 1
    assert f"A supervisor is already running here (pid {first.pid})." in second.stderr
    assert (
        supervised.type(
            "run", FLEET_HOME=str(supervised.place / "other"), FLEET_CODER="nope"
        ).returncode
        == 2
    )
    supervised.wait(task)
    assert supervised.endings(task) == ["succeeded"]


def test_looking_at_the_tasks_never_keeps_a_supervisor_from_starting(supervised):
    home = Home(supervised.home)
    with home.alone() as mine:
        assert mine
        assert home.supervisor_pid() == os.getpid()
    lock = supervised.home / "supervisor.lock"
    before = lock.read_bytes()
    assert home.supervisor_pid() == 0
    assert lock.read_bytes() == before  # a look leaves no trace


def test_when_the_keeper_is_killed_the_run_is_lost_and_the_next_goes_on_in_its_place(supervised):
    task = supervised.add(
        "append log one", "commit one", "append log two", "spawn 60", "say halfway", "sleep 1",
        "commit two", attempts=1,
    )  # fmt: skip
    supervised.start()
    run = supervised.running(task)
    supervised.heard(task, "halfway")
    processes = supervised.strays()
    assert len(processes) == 2  # the coder, and what it spawned
    os.kill(supervised.keeper(run.id), signal.SIGKILL)
    supervised.wait(task)
    assert supervised.endings(task) == ["lost", "succeeded"]
    assert not any(is_alive(pid) for pid in processes)
    lost, second = supervised.store.runs(task)
    assert lost.outcome.detail == "Its keeper process disappeared."
    assert lost.outcome.gone
    assert second.workspace == lost.workspace
    assert supervised.commits(f"fleet/{task}") == ["first", "one", "two"]
    assert Path(lost.workspace.path, "log").read_text() == "one\ntwo\n"
    assert supervised.task(task).tally.failures == 0


def test_a_keeper_that_died_while_nobody_looked_is_found_out_later(supervised):
    task = supervised.add("say begun", "sleep 60")
    supervised.start()
    run = supervised.running(task)
    supervised.heard(task, "begun")
    coder = supervised.coder(run.id)
    supervised.end()
    os.kill(supervised.keeper(run.id), signal.SIGKILL)
    assert is_alive(coder)
    supervised.start()
    supervised.running(task, 2)
    assert not is_alive(coder)
    assert supervised.endings(task)[0] == "lost"


def test_when_the_coder_is_killed_the_run_failed_and_is_tried_again_after_a_pause(supervised):
    task = supervised.add("say begun", "sleep 60")
    supervised.start(FLEET_RUN_BACKOFF="0.5")
    run = supervised.running(task)
    supervised.heard(task, "begun")
    os.kill(supervised.coder(run.id), signal.SIGKILL)
    second = supervised.running(task, 2)
    first = supervised.run(task, 1)
    assert (str(first.outcome.ending), first.outcome.exit_code) == ("failed", -9)
    assert second.claimed_at - first.ended_at >= 500_000
    assert second.workspace == first.workspace
    assert supervised.task(task).tally.failures == 1


def test_a_conversation_that_was_named_but_never_begun_is_not_gone_on_with(supervised):
    """The coder is killed after it has said its session, and before it has taken the prompt."""
    task = supervised.add("write a.txt x", "commit a")
    memory = supervised.client.app.home.task_dir(task) / "scripted.tmp"
    os.mkfifo(memory)  # the scripted coder waits here
    supervised.start()
    run = supervised.running(task)
    supervised.heard(task, '"session"')
    assert '"turn"' not in supervised.transcript(task)
    memory.rename(memory.with_name("hidden"))
    os.kill(supervised.coder(run.id), signal.SIGKILL)
    supervised.wait(task)
    assert supervised.endings(task) == ["failed", "succeeded"]
    assert supervised.commits(f"fleet/{task}") == ["first", "a"]


def test_a_run_is_started_once_however_the_supervisor_dies_while_starting_it(supervised):
    tasks = [supervised.add("say begun", f"append log {n}", f"commit {n}") for n in range(3)]
    for delay in (0.05, 0.1, 0.15, 0.2, 0.3):
        supervised.start()
        time.sleep(delay)
        supervised.end()
    supervised.start()
    supervised.wait(*tasks)
    for n, task in enumerate(tasks):
        assert supervised.endings(task) == ["succeeded"], supervised.story(task)
        assert supervised.texts(task) == ["begun"]
        assert supervised.commits(f"fleet/{task}") == ["first", str(n)]


def test_the_progress_of_an_adopted_run_goes_on_where_it_was(supervised):
    task = supervised.add("usage 100 1", "lines 3", "sleep 1.5", "usage 200 2", "sleep 60")
    supervised.start()
    run = supervised.running(task)
    until(lambda: _tokens(supervised, run.id) == 100, why=supervised.said)
    supervised.end()
    supervised.start()
    until(lambda: _tokens(supervised, run.id) == 300, why=supervised.said)


def _tokens(supervised, run_id):
    found = supervised.store.progress([run_id])
    return found[run_id].usage.input if found else 0


def test_a_run_folder_that_vanished_proves_nothing_about_its_coder(supervised):
    """Its workspace is not handed on while the coder may still be at work there."""
    task = supervised.add("say begun", "sleep 60")
    supervised.start()
    run = supervised.running(task)
    supervised.heard(task, "begun")
    coder, keeper = supervised.coder(run.id), supervised.keeper(run.id)
    folder = supervised.home / "runs" / run.id
    hidden = folder.with_name("hidden")
    folder.rename(hidden)
    supervised.wait(supervised.add("say 1"))  # so the supervisor has looked at its runs since then
    assert is_alive(coder)
    assert supervised.endings(task) == ["running"]
    for pid in (keeper, coder):
        os.kill(pid, signal.SIGKILL)
