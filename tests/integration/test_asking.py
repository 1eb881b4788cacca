"""Questions: a run parks on one, and the next goes on with the answer, whatever dies between."""

import os
import signal

from tests.wait import until

ASK = ("say thinking", "ask Which licence?", "write LICENSE {answer}", "commit Choose {answer}")


SLOW = """
import os, time
if os.environ.get("FLEET_RUN_ID", "").endswith(".2"):
    time.sleep(30)
"""


def question(supervised, task):
    return until(lambda: [m for m in supervised.store.messages(task) if m.kind == "question"])[0]


def test_a_task_that_asks_waits_for_its_answer_and_goes_on_with_it(supervised):
    task = supervised.add(*ASK)
    supervised.start()
    until(lambda: supervised.endings(task) == ["asked"], why=lambda: supervised.story(task))
    assert supervised.state(task) == "open"
    assert supervised.type("answer", task, "MIT", "or", "BSD").returncode == 0
    supervised.wait(task)
    assert supervised.endings(task) == ["asked", "succeeded"]
    assert supervised.run(task, 1).workspace == supervised.run(task, 2).workspace
    assert supervised.commits(f"fleet/{task}") == ["first", "Choose MIT or BSD"]
    answer = supervised.store.messages(task)[1]
    assert str(answer.state) == "closed"


def test_an_answer_that_comes_before_the_run_has_ended_is_not_lost(supervised):
    task = supervised.add("run fleet ask --park Which?", "sleep 0.8", "say {answer}")
    supervised.start()
    question(supervised, task)
    assert supervised.state(task) == "running"
    assert supervised.type("answer", task, "This one").returncode == 0
    until(lambda: supervised.endings(task)[:1] == ["asked"], why=lambda: supervised.story(task))
    until(lambda: len(supervised.store.runs(task)) == 2)
    until(lambda: str(supervised.store.messages(task)[1].state) == "closed")
    assert "This one" in (supervised.home / "runs" / f"{task}.2" / "input").read_text()


def test_an_answer_that_comes_while_no_supervisor_runs_is_not_lost(supervised):
    task = supervised.add("sleep 0.4", *ASK)
    supervised.start()
    supervised.running(task)
    supervised.end()
    question(supervised, task)
    supervised.type("answer", task, "MIT")
    supervised.start()
    supervised.wait(task)
    assert supervised.commits(f"fleet/{task}")[-1] == "Choose MIT"


def test_an_answer_is_not_lost_when_the_supervisor_died_before_it_saw_the_run_start(supervised):
    """The run starts, asks, is answered and ends while its record still says `claimed`."""
    task = supervised.add(*ASK)
    supervised.start()
    until((supervised.home / "runs" / f"{task}.1" / "launch.json").exists)
    supervised.end()
    question(supervised, task)
    supervised.type("answer", task, "MIT")
    until(lambda: not supervised.strays())
    supervised.start()
    supervised.wait(task)
    assert supervised.commits(f"fleet/{task}")[-1] == "Choose MIT"


def test_an_answer_is_told_again_when_the_run_died_before_it_could_hear_it(supervised):
    """The second run is stopped dead before its turn has begun."""
    task = supervised.add(*ASK)
    supervised.start()
    until(lambda: supervised.endings(task) == ["asked"])
    supervised.end()
    supervised.type("answer", task, "MIT")
    slow = supervised.place / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(SLOW)
    supervised.start(PYTHONPATH=str(slow))
    run = supervised.running(task, 2)
    os.kill(supervised.keeper(run.id), signal.SIGKILL)
    supervised.wait(task)
    assert supervised.endings(task) == ["asked", "lost", "succeeded"]
    assert supervised.commits(f"fleet/{task}") == ["first", "Choose MIT"]


def test_a_run_that_is_over_may_not_ask_any_more(supervised):
    task = supervised.add("say begun", "sleep 60")
    supervised.start()
    run = supervised.running(task)
    env = _env_of(supervised, run.id)
    os.kill(supervised.coder(run.id), signal.SIGKILL)
    supervised.running(task, 2)
    stale = supervised.type("ask", "--park", "May I?", **env)
    assert stale.returncode == 1
    assert f"{run.id} has ended" in stale.stderr
    assert supervised.store.messages(task) == []
    current = supervised.type("ask", "--park", "May I?", **_env_of(supervised, f"{task}.2"))
    assert current.returncode == 0, current.stderr
    forged = supervised.type("ask", "x", **(env | {"FLEET_RUN_TOKEN": "0" * 64}))
    assert forged.returncode == 1


def _env_of(supervised, run_id):
    home = supervised.client.app.home
    return {
        "FLEET_RUN_ID": run_id,
        "FLEET_TASK_ID": run_id.rpartition(".")[0],
        "FLEET_RUN_TOKEN": home.run_token(run_id),
    }


def test_an_agent_that_waits_for_its_answer_hears_it_in_the_same_run(supervised):
    task = supervised.add("run fleet ask Which?", "say heard")
    supervised.start()
    question(supervised, task)
    supervised.type("answer", task, "This one")
    supervised.wait(task)
    assert supervised.endings(task) == ["succeeded"]
    assert "This one" in supervised.transcript(task)


def test_a_question_whose_asker_gave_up_waiting_holds_the_task_and_is_answered(supervised):
    task = supervised.add("run fleet ask Colour? --timeout 0.5", "say I go on.", "say {answer}")
    supervised.start()
    until(lambda: supervised.endings(task) == ["asked"], why=lambda: supervised.story(task))
    assert "Colour?" in supervised.type("questions").stdout
    supervised.type("answer", task, "Red")
    supervised.wait(task)
