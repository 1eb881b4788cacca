"""Mail, broadcasts and posts enter the conversations of the agents at work, once."""

from __future__ import annotations

import json

import pytest

from contract.launching import until
from fleet.domain.task import Spec
from fleet.operations.catalogue import perform
from fleet.operations.messages.mail import SendMail
from fleet.operations.tasks.change import AddTask


def heard(yard, task: str) -> list[str]:
    return [t.removeprefix("Heard: ") for t in yard.texts(task) if t.startswith("Heard: ")]


def data(yard, *words: str):
    ran = yard.type(*words, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["data"]


def ok(yard, *words: str) -> None:
    ran = yard.type(*words)
    assert ran.returncode == 0, ran.stderr


def mail_for(yard, name: str):
    return data(yard, "mail", "list", name)


def child(yard, swarm: str, *script: str) -> str:
    spec, where = Spec(cwd=str(yard.repo)), str(yard.repo)
    asked = AddTask(script[0], "\n".join(script), where, spec, parent=swarm)
    return yard.client.call(asked).id


@pytest.mark.parametrize("name", ["t-1", "t-1.1", "seat"])
def test_mail_reaches_the_agent_at_work_by_any_of_its_names(yard, name):
    task = yard.add("hear 20", "say Bye.", branch="seat")
    yard.start()
    yard.running(task)
    ok(yard, "mail", "send", name, "Lunch", "is", "ready.")
    yard.wait(task)
    assert heard(yard, task) == ["[Mail from ada]\nLunch is ready."]
    (mail,) = mail_for(yard, name)
    assert mail["read_at"]


def test_a_post_is_heard_by_the_others_in_the_swarm_and_not_by_its_author(yard):
    swarm = data(yard, "swarm-create", "pair", "2")["id"]
    post = f"""run fleet blackboard-post {swarm} '{{"text": "Ping"}}'"""
    one = child(yard, swarm, "hear 20", post, "hear 2", "say Bye.")
    other = child(yard, swarm, "hear 20", "say Bye.")
    outside = yard.add("say Waiting.", "hear 4", "say Bye.")
    yard.start()
    for task in (one, other, outside):
        yard.running(task)
    ok(yard, "send", one, "Go.")
    yard.wait(one, other, outside)
    assert heard(yard, other) == [f"[status from {one}.1, board of {swarm}]\nPing"]
    assert heard(yard, one) == ["Go."]
    assert heard(yard, outside) == []
    (row,) = data(yard, "blackboard", swarm)
    assert row["readers"] == [f"{other}.1"]


def test_a_post_for_one_is_heard_by_that_one(yard):
    task, other = yard.add("hear 20", "say Bye."), yard.add("hear 3", "say Bye.")
    yard.start()
    yard.running(task)
    yard.running(other)
    words = ("--to", task, "--type", "directive", "--priority", "high")
    ok(yard, "blackboard-post", other, '{"stop": true}', *words)
    yard.wait(task, other)
    head = f"directive to you from ada, board of {other}, high"
    assert heard(yard, task) == [f'[{head}]\n{{"stop": true}}']
    assert heard(yard, other) == []


def test_a_broadcast_reaches_every_agent_of_the_team(yard):
    tasks = [yard.add("hear 20", "say Bye.") for _ in range(2)]
    yard.start()
    for task in tasks:
        yard.running(task)
    ok(yard, "mail", "broadcast", "Freeze!")
    yard.wait(*tasks)
    for task in tasks:
        assert heard(yard, task) == ["[To the whole team, from ada]\nFreeze!"]


def test_what_was_told_is_neither_lost_nor_doubled_by_the_death_of_the_supervisor(yard):
    task = yard.add("say Ready.", "sleep 2", "hear 20", "hear 1", "say Bye.")
    yard.start()
    yard.heard(task, "Ready.")
    ok(yard, "mail", "send", task, "Hello.")
    until(lambda: b"Hello." in (yard.home / "runs" / "t-1.1" / "input").read_bytes())
    yard.end()
    yard.start()
    yard.wait(task)
    assert heard(yard, task) == ["[Mail from ada]\nHello."]
    assert mail_for(yard, task)[0]["read_at"]


def test_what_it_did_not_hear_stays_unread_and_holds_nothing_up(yard):
    task = yard.add("say Ready.", "sleep 2", "say Bye.")
    yard.start()
    yard.heard(task, "Ready.")
    ok(yard, "mail", "send", task, "Too late.")
    yard.wait(task)
    assert yard.endings(task) == ["succeeded"]
    assert mail_for(yard, task)[0]["read_at"] is None


def test_mail_that_it_has_read_itself_is_not_told_to_it_again(yard):
    task = yard.add("say Ready.", "sleep 1.5", "run fleet mail read e-1", "hear 2", "say Bye.")
    yard.start()
    yard.heard(task, "Ready.")
    yard.end()
    perform(yard.client.app.context, SendMail(task, "Hello."))  # a command would tell it at once
    until(lambda: mail_for(yard, task)[0]["read_at"], why=lambda: yard.story(task))
    yard.start()
    yard.wait(task)
    assert heard(yard, task) == []
    assert yard.endings(task) == ["succeeded"]


def test_mail_for_a_task_that_waits_is_in_its_prompt(yard):
    task = yard.add("say {answer}")
    ok(yard, "mail", "send", task, "say Mailed.")
    yard.start()
    yard.wait(task)
    assert "Mailed." in yard.texts(task)
    assert mail_for(yard, task)[0]["read_at"]


def test_another_teams_agent_hears_nothing(yard):
    task = yard.add("hear 3", "say Bye.")
    yard.start()
    yard.running(task)
    other = {"CLAUDE_FLEET_TEAM": "blue"}
    assert yard.type("mail", "send", task, "Psst.", **other).returncode == 0
    assert yard.type("mail", "broadcast", "Psst.", **other).returncode == 1
    yard.wait(task)
    assert heard(yard, task) == []


def test_with_no_supervisor_whoever_says_it_sees_to_it(yard):
    task = yard.add("say Ready.", "hear 20", "say Bye.", "sleep 5")
    yard.start()
    yard.heard(task, "Ready.")
    yard.end()
    ok(yard, "mail", "send", task, "Hello.")
    assert mail_for(yard, task)[0]["read_at"]
    assert heard(yard, task) == ["[Mail from ada]\nHello."]


def test_what_was_left_for_it_is_told_as_it_begins(yard):
    task = yard.add("say Hello.", branch="seat")
    ok(yard, "checkpoint", "save", "A port", "It is chosen", "--to", "seat")
    remember = {"CLAUDE_CODE_AGENT_NAME": "seat"}
    assert yard.type("memory", "store", "port", "It is 4000", **remember).returncode == 0
    yard.start()
    yard.wait(task)
    said = yard.texts(task)
    assert "[Checkpoint from ada]" in said
    assert '{"goal": "A port", "now": "It is chosen"}' in said
    assert said[-2:] == ["[What you remember]", "port: It is 4000"]
