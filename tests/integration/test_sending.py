"""`fleet send`: words reach the run that is going, or the next one; none are lost or said twice."""

from __future__ import annotations

import json

from tests.wait import until


def heard(supervised, task: str) -> list[str]:
    return [text for text in supervised.texts(task) if text.startswith("Heard: ")]


def status(supervised, message: str) -> str:
    messages = json.loads(supervised.type("show", "t-1", "--json").stdout)["data"]["messages"]
    return next(m["status"] for m in messages if m["id"] == message)


def test_words_enter_the_conversation_that_is_going(supervised):
    task = supervised.add("hear 20", "hear 20", "say Bye.")
    supervised.start()
    supervised.running(task)
    first = supervised.type("send", task, "Add tests", "too.")
    assert (first.returncode, first.stdout) == (0, f"{task} has read the message (m-1).\n")
    assert (
        supervised.type("send", task, "And docs.").stdout == f"{task} has read the message (m-2).\n"
    )
    supervised.wait(task)
    assert heard(supervised, task) == ["Heard: Add tests too.", "Heard: And docs."]
    assert supervised.endings(task) == ["succeeded"]


def test_words_to_a_task_that_does_not_run_are_queued_and_start_its_next_run(supervised):
    task = supervised.add("say {answer}")
    sent = supervised.type("send", task, "Be quick.")
    assert sent.stdout == f"Queued (m-1): {task} is not running; its next run gets the message.\n"
    supervised.start()
    supervised.wait(task)
    assert status(supervised, "m-1") == "delivered"


def test_words_that_the_run_did_not_hear_are_heard_by_the_next(supervised):
    task = supervised.add("sleep 1", "say First.")
    supervised.start()
    supervised.running(task)
    sent = supervised.type("send", task, "One more thing.", "--wait", "0")
    assert sent.stdout.startswith("Queued (m-1): t-1 has not read the message yet")
    supervised.wait(task)
    assert supervised.endings(task) == ["succeeded", "succeeded"]
    assert status(supervised, "m-1") == "delivered"


def test_words_survive_the_death_of_the_supervisor_and_are_said_once(supervised):
    task = supervised.add("say Ready.", "sleep 2", "hear 20", "hear 1", "say Bye.")
    supervised.start()
    supervised.heard(task, "Ready.")
    supervised.type("send", task, "Hello.", "--wait", "0")
    until(lambda: b"Hello." in (supervised.home / "runs" / "t-1.1" / "input").read_bytes())
    supervised.end()
    supervised.start()
    supervised.wait(task)
    assert heard(supervised, task) == ["Heard: Hello."]
    assert status(supervised, "m-1") == "delivered"


def test_words_to_a_task_that_has_ended_are_refused(supervised):
    task = supervised.add("say Done.")
    supervised.start()
    supervised.wait(task)
    refused = supervised.type("send", task, "Hello?")
    assert refused.returncode == 1
    assert "t-1 is done: no run will read the message." in refused.stderr
    assert "fleet retry t-1" in refused.stderr


def test_an_agent_closes_its_own_task(supervised):
    task = supervised.add("run fleet close t-1 --reason Fixed.", "exit 3")
    supervised.start()
    supervised.wait(task)
    assert supervised.endings(task) == ["succeeded"]
    assert supervised.task(task).tally.why == "Fixed."
