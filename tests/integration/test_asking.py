"""Questions: a run parks on one, and the next goes on with the answer, whatever dies between."""

import os
import signal

from contract.launching import until

ASK = ("say thinking", "ask Which licence?", "write LICENSE {answer}", "commit Choose {answer}")


SLOW = """
import os, time
if os.environ.get("FLEET_RUN_ID", "").endswith(".2"):
    time.sleep(30)
"""


def question(yard, task):
    return until(lambda: [m for m in yard.store.messages(task) if m.kind == "question"])[0]


def test_a_task_that_asks_waits_for_its_answer_and_goes_on_with_it(yard):
    task = yard.add(*ASK)
    yard.start()
    until(lambda: yard.endings(task) == ["asked"], why=lambda: yard.story(task))
    assert yard.state(task) == "open"
    assert yard.type("answer", task, "MIT", "or", "BSD").returncode == 0
    yard.wait(task)
    assert yard.endings(task) == ["asked", "succeeded"]
    assert yard.run(task, 1).workspace == yard.run(task, 2).workspace
    assert yard.commits(f"fleet/{task}") == ["first", "Choose MIT or BSD"]
    answer = yard.store.messages(task)[1]
    assert str(answer.state) == "closed"


def test_an_answer_that_comes_before_the_run_has_ended_is_not_lost(yard):
    task = yard.add("run fleet ask --park Which?", "sleep 0.8", "say {answer}")
    yard.start()
    question(yard, task)
    assert yard.state(task) == "running"
    assert yard.type("answer", task, "This one").returncode == 0
    until(lambda: yard.endings(task)[:1] == ["asked"], why=lambda: yard.story(task))
    until(lambda: len(yard.store.runs(task)) == 2)
    until(lambda: str(yard.store.messages(task)[1].state) == "closed")
    assert "This one" in (yard.home / "runs" / f"{task}.2" / "input").read_text()


def test_an_answer_that_comes_while_no_supervisor_runs_is_not_lost(yard):
    task = yard.add("sleep 0.4", *ASK)
    yard.start()
    yard.running(task)
    yard.end()
    question(yard, task)
    yard.type("answer", task, "MIT")
    yard.start()
    yard.wait(task)
    assert yard.commits(f"fleet/{task}")[-1] == "Choose MIT"


def test_an_answer_is_not_lost_when_the_supervisor_died_before_it_saw_the_run_start(yard):
    """The run starts, asks, is answered and ends while its record still says `claimed`."""
    task = yard.add(*ASK)
    yard.start()
    until((yard.home / "runs" / f"{task}.1" / "launch.json").exists)
    yard.end()
    question(yard, task)
    yard.type("answer", task, "MIT")
    until(lambda: not yard.strays())
    yard.start()
    yard.wait(task)
    assert yard.commits(f"fleet/{task}")[-1] == "Choose MIT"


def test_an_answer_is_told_again_when_the_run_died_before_it_could_hear_it(yard):
    """The second run is stopped dead before its turn has begun."""
    task = yard.add(*ASK)
    yard.start()
    until(lambda: yard.endings(task) == ["asked"])
    yard.end()
    yard.type("answer", task, "MIT")
    slow = yard.place / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(SLOW)
    yard.start(PYTHONPATH=str(slow))
    run = yard.running(task, 2)
    os.kill(yard.keeper(run.id), signal.SIGKILL)
    yard.wait(task)
    assert yard.endings(task) == ["asked", "lost", "succeeded"]
    assert yard.commits(f"fleet/{task}") == ["first", "Choose MIT"]


def test_a_run_that_is_over_may_not_ask_any_more(yard):
    task = yard.add("say begun", "sleep 60")
    yard.start()
    run = yard.running(task)
    env = _env_of(yard, run.id)
    os.kill(yard.coder(run.id), signal.SIGKILL)
    yard.running(task, 2)
    stale = yard.type("ask", "--park", "May I?", **env)
    assert stale.returncode == 1
    assert f"{run.id} is over" in stale.stderr
    assert yard.store.messages(task) == []
    current = yard.type("ask", "--park", "May I?", **_env_of(yard, f"{task}.2"))
    assert current.returncode == 0, current.stderr
    forged = yard.type("ask", "x", **(env | {"FLEET_RUN_TOKEN": "0" * 64}))
    assert forged.returncode == 1


def _env_of(yard, run_id):
    home = yard.client.app.home
    return {
        "FLEET_RUN_ID": run_id,
        "FLEET_TASK_ID": run_id.rpartition(".")[0],
        "FLEET_RUN_TOKEN": home.run_token(run_id),
    }


def test_an_agent_that_waits_for_its_answer_hears_it_in_the_same_run(yard):
    task = yard.add("run fleet ask Which?", "say heard")
    yard.start()
    question(yard, task)
    yard.type("answer", task, "This one")
    yard.wait(task)
    assert yard.endings(task) == ["succeeded"]
    assert "This one" in yard.transcript(task)


def test_a_question_whose_asker_gave_up_waiting_holds_the_task_and_is_answered(yard):
    task = yard.add("run fleet ask Colour? --timeout 0.5", "say I go on.", "say {answer}")
    yard.start()
    until(lambda: yard.endings(task) == ["asked"], why=lambda: yard.story(task))
    assert "Colour?" in yard.type("questions").stdout
    yard.type("answer", task, "Red")
    yard.wait(task)
