"""`fleet send`: words reach the run that is going, or the next one; none are lost or said twice."""

from __future__ import annotations

import json

from contract.launching import until


def heard(yard, task: str) -> list[str]:
    return [text for text in yard.texts(task) if text.startswith("Heard: ")]


def status(yard, message: str) -> str:
    messages = json.loads(yard.type("show", "t-1", "--json").stdout)["data"]["messages"]
    return next(m["status"] for m in messages if m["id"] == message)


def test_words_enter_the_conversation_that_is_going(yard):
    task = yard.add("hear 20", "hear 20", "say Bye.")
    yard.start()
    yard.running(task)
    first = yard.type("send", task, "Add tests", "too.")
    assert (first.returncode, first.stdout) == (0, f"{task} has heard it (m-1).\n")
    assert yard.type("send", task, "And docs.").stdout == f"{task} has heard it (m-2).\n"
    yard.wait(task)
    assert heard(yard, task) == ["Heard: Add tests too.", "Heard: And docs."]
    assert yard.endings(task) == ["succeeded"]


def test_words_to_a_task_that_does_not_run_are_queued_and_start_its_next_run(yard):
    task = yard.add("say {answer}")
    sent = yard.type("send", task, "Be quick.")
    assert sent.stdout == f"Queued (m-1): {task} does not run now; its next run is told.\n"
    yard.start()
    yard.wait(task)
    assert status(yard, "m-1") == "delivered"


def test_words_that_the_run_did_not_hear_are_heard_by_the_next(yard):
    task = yard.add("sleep 1", "say First.")
    yard.start()
    yard.running(task)
    sent = yard.type("send", task, "One more thing.", "--wait", "0")
    assert sent.stdout.startswith("Queued (m-1): t-1 has not heard it yet")
    yard.wait(task)
    assert yard.endings(task) == ["succeeded", "succeeded"]
    assert status(yard, "m-1") == "delivered"


def test_words_survive_the_death_of_the_supervisor_and_are_said_once(yard):
    task = yard.add("say Ready.", "sleep 2", "hear 20", "hear 1", "say Bye.")
    yard.start()
    yard.heard(task, "Ready.")
    yard.type("send", task, "Hello.", "--wait", "0")
    until(lambda: b"Hello." in (yard.home / "runs" / "t-1.1" / "input").read_bytes())
    yard.end()
    yard.start()
    yard.wait(task)
    assert heard(yard, task) == ["Heard: Hello."]
    assert status(yard, "m-1") == "delivered"


def test_words_to_a_task_that_has_ended_are_refused(yard):
    task = yard.add("say Done.")
    yard.start()
    yard.wait(task)
    refused = yard.type("send", task, "Hello?")
    assert refused.returncode == 1
    assert "t-1 is done: nobody is there to hear it." in refused.stderr
    assert "fleet retry t-1" in refused.stderr


def test_an_agent_closes_its_own_task(yard):
    task = yard.add("run fleet close t-1 --reason Fixed.", "exit 3")
    yard.start()
    yard.wait(task)
    assert yard.endings(task) == ["succeeded"]
    assert yard.task(task).tally.why == "Fixed."
