"""Mail, posts, chats and hand-offs enter the conversations of the agents at work, once."""

from __future__ import annotations

import json

import pytest

from fleet.app.run_identity import actor_of
from fleet.domain.task import Spec
from fleet.operations.catalogue import perform
from fleet.operations.messages.mail import SendMail
from fleet.operations.tasks.change import AddTask
from fleet.operations.team.members import BeSeen
from tests.wait import until


def heard(supervised, task: str) -> list[str]:
    return [t.removeprefix("Heard: ") for t in supervised.texts(task) if t.startswith("Heard: ")]


def data(supervised, *words: str):
    ran = supervised.type(*words, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["data"]


def ok(supervised, *words: str) -> None:
    ran = supervised.type(*words)
    assert ran.returncode == 0, ran.stderr


def mail_for(supervised, name: str):
    return data(supervised, "mail", "list", name)


def child(supervised, swarm: str, *script: str) -> str:
    spec, where = Spec(cwd=str(supervised.repo)), str(supervised.repo)
    asked = AddTask(script[0], "\n".join(script), where, spec, parent=swarm)
    return supervised.client.call(asked).id


@pytest.mark.parametrize("name", ["t-1", "t-1.1", "seat"])
def test_mail_reaches_the_agent_at_work_by_any_of_its_names(supervised, name):
    task = supervised.add("hear 20", "say Bye.", branch="seat")
    supervised.start()
    supervised.running(task)
    ok(supervised, "mail", "send", name, "Lunch", "is", "ready.")
    supervised.wait(task)
    assert heard(supervised, task) == ["[Mail from ada]\nLunch is ready."]
    (mail,) = mail_for(supervised, name)
    assert mail["read_at"]


def test_a_post_is_heard_by_the_others_in_the_swarm_and_not_by_its_author(supervised):
    swarm = data(supervised, "swarm-create", "pair", "2")["id"]
    post = f"""run fleet blackboard-post {swarm} '{{"text": "Ping"}}'"""
    one = child(supervised, swarm, "hear 20", post, "hear 2", "say Bye.")
    other = child(supervised, swarm, "hear 20", "say Bye.")
    outside = supervised.add("say Waiting.", "hear 4", "say Bye.")
    supervised.start()
    for task in (one, other, outside):
        supervised.running(task)
    ok(supervised, "send", one, "Go.")
    supervised.wait(one, other, outside)
    assert heard(supervised, other) == [f"[status from {one}.1, board of {swarm}]\nPing"]
    assert heard(supervised, one) == ["Go."]
    assert heard(supervised, outside) == []
    (row,) = data(supervised, "blackboard", swarm)
    assert row["readers"] == [f"{other}.1"]


def test_a_post_for_one_is_heard_by_that_one(supervised):
    task, other = supervised.add("hear 20", "say Bye."), supervised.add("hear 3", "say Bye.")
    supervised.start()
    supervised.running(task)
    supervised.running(other)
    words = ("--to", task, "--type", "directive", "--priority", "high")
    ok(supervised, "blackboard-post", other, '{"stop": true}', *words)
    supervised.wait(task, other)
    head = f"directive to you from ada, board of {other}, high"
    assert heard(supervised, task) == [f'[{head}]\n{{"stop": true}}']
    assert heard(supervised, other) == []


def test_a_broadcast_reaches_every_agent_of_the_team(supervised):
    tasks = [supervised.add("hear 20", "say Bye.") for _ in range(2)]
    supervised.start()
    for task in tasks:
        supervised.running(task)
    ok(supervised, "mail", "broadcast", "Freeze!")
    supervised.wait(*tasks)
    for task in tasks:
        assert heard(supervised, task) == ["[To the whole team, from ada]\nFreeze!"]


def chat_with(supervised, *names: str) -> str:
    return data(supervised, "chat", "open", *names)["id"]


def seen(supervised, task: str) -> None:
    """Its run is a member of its team from now on, as one that uses the tools is."""
    app = supervised.client.app
    perform(app.context._replace(actor=actor_of(app, f"{task}.1")), BeSeen())


def test_a_line_in_a_chat_reaches_the_agents_in_it_and_nobody_else(supervised):
    task, outside = supervised.add("hear 20", "say Bye."), supervised.add("hear 3", "say Bye.")
    supervised.start()
    supervised.running(task)
    supervised.running(outside)
    seen(supervised, task)
    chat = chat_with(supervised, f"{task}.1")
    ok(supervised, "chat", "say", chat, "Lunch is ready.")
    supervised.wait(task, outside)
    assert heard(supervised, task) == [f"[Chat {chat}, from ada]\nLunch is ready."]
    assert heard(supervised, outside) == []
    (line,) = data(supervised, "chat", "read", chat)
    assert supervised.client.app.store.message(line["id"]).receipt.readers == (f"{task}.1",)


def test_in_the_teams_chat_only_a_lead_speaks_into_every_conversation(supervised):
    """What enters a conversation is an order: a worker may give one to an agent, not to all."""
    chat = chat_with(supervised)
    one = supervised.add("hear 20", f"run fleet chat say {chat} Ping", "hear 20", "say Bye.")
    other = supervised.add("hear 20", "say Bye.")
    supervised.start()
    supervised.running(one)
    supervised.running(other)
    ok(supervised, "send", one, "Go.")
    until(lambda: [line["text"] for line in data(supervised, "chat", "read", chat)] == ["Ping"])
    ok(supervised, "chat", "say", chat, "Lunch is ready.")
    supervised.wait(one, other)
    lunch = f"[Chat {chat}, from ada]\nLunch is ready."
    assert heard(supervised, other) == [lunch]
    assert heard(supervised, one) == ["Go.", lunch]


def test_lines_for_an_agent_that_waits_to_start_are_in_its_prompt(supervised):
    task = supervised.add("say Hello.")
    chat = chat_with(supervised, task)
    ok(supervised, "chat", "say", chat, "say One.")
    ok(supervised, "chat", "say", chat, "say Two.")
    supervised.start()
    supervised.wait(task)
    said = supervised.texts(task)
    assert [text for text in said if text in {"One.", "Two."}] == ["One.", "Two."]
    lines = data(supervised, "chat", "read", chat)
    store = supervised.client.app.store
    assert [store.message(line["id"]).receipt.readers for line in lines] == [(f"{task}.1",)] * 2


def test_a_hand_off_reaches_the_agent_at_work_and_still_waits_to_be_accepted(supervised):
    task = supervised.add("hear 20", "say Bye.", branch="seat")
    supervised.start()
    supervised.running(task)
    saved = data(supervised, "checkpoint", "save", "A port", "It is chosen", "--to", "seat")
    supervised.wait(task)
    told = '[Checkpoint from ada]\n{"goal": "A port", "now": "It is chosen"}'
    assert heard(supervised, task) == [told]
    assert data(supervised, "checkpoint", "load", saved["id"])["status"] == "pending"


def test_what_was_told_is_neither_lost_nor_doubled_by_the_death_of_the_supervisor(supervised):
    task = supervised.add("say Ready.", "sleep 2", "hear 20", "hear 1", "say Bye.")
    supervised.start()
    supervised.heard(task, "Ready.")
    ok(supervised, "mail", "send", task, "Hello.")
    until(lambda: b"Hello." in (supervised.home / "runs" / "t-1.1" / "input").read_bytes())
    supervised.end()
    supervised.start()
    supervised.wait(task)
    assert heard(supervised, task) == ["[Mail from ada]\nHello."]
    assert mail_for(supervised, task)[0]["read_at"]


def test_what_it_did_not_hear_stays_unread_and_holds_nothing_up(supervised):
    task = supervised.add("say Ready.", "sleep 2", "say Bye.")
    supervised.start()
    supervised.heard(task, "Ready.")
    ok(supervised, "mail", "send", task, "Too late.")
    supervised.wait(task)
    assert supervised.endings(task) == ["succeeded"]
    assert mail_for(supervised, task)[0]["read_at"] is None


def test_mail_that_it_has_read_itself_is_not_told_to_it_again(supervised):
    task = supervised.add(
        "say Ready.", "sleep 1.5", "run fleet mail read m-1", "hear 2", "say Bye."
    )
    supervised.start()
    supervised.heard(task, "Ready.")
    supervised.end()
    perform(
        supervised.client.app.context, SendMail(task, "Hello.")
    )  # a command would tell it at once
    until(lambda: mail_for(supervised, task)[0]["read_at"], why=lambda: supervised.story(task))
    supervised.start()
    supervised.wait(task)
    assert heard(supervised, task) == []
    assert supervised.endings(task) == ["succeeded"]


def test_mail_for_a_task_that_waits_is_in_its_prompt(supervised):
    task = supervised.add("say {answer}")
    ok(supervised, "mail", "send", task, "say Mailed.")
    supervised.start()
    supervised.wait(task)
    assert "Mailed." in supervised.texts(task)
    assert mail_for(supervised, task)[0]["read_at"]


def test_another_teams_agent_hears_nothing(supervised):
    task = supervised.add("hear 3", "say Bye.")
    supervised.start()
    supervised.running(task)
    other = {"CLAUDE_FLEET_TEAM": "blue"}
    assert supervised.type("mail", "send", task, "Psst.", **other).returncode == 2
    assert supervised.type("mail", "broadcast", "Psst.", **other).returncode == 1
    supervised.wait(task)
    assert heard(supervised, task) == []


def test_with_no_supervisor_whoever_says_it_sees_to_it(supervised):
    task = supervised.add("say Ready.", "hear 20", "say Bye.", "sleep 5")
    supervised.start()
    supervised.heard(task, "Ready.")
    supervised.end()
    ok(supervised, "mail", "send", task, "Hello.")
    assert mail_for(supervised, task)[0]["read_at"]
    assert heard(supervised, task) == ["[Mail from ada]\nHello."]


def test_with_no_supervisor_a_chat_line_and_a_hand_off_are_delivered_by_the_command(supervised):
    task = supervised.add("say Ready.", "hear 20", "hear 20", "say Bye.", "sleep 5")
    supervised.start()
    supervised.heard(task, "Ready.")
    supervised.end()
    ok(supervised, "chat", "say", chat_with(supervised, task), "Lunch is ready.")
    assert [words.splitlines()[-1] for words in heard(supervised, task)] == ["Lunch is ready."]
    ok(supervised, "checkpoint", "save", "A port", "It is chosen", "--to", task)
    assert len(heard(supervised, task)) == 2


def test_what_was_left_for_it_is_told_as_it_begins(supervised):
    task = supervised.add("say Hello.", branch="seat")
    ok(supervised, "checkpoint", "save", "A port", "It is chosen", "--to", "seat")
    remember = {"CLAUDE_CODE_AGENT_NAME": "seat"}
    assert supervised.type("memory", "store", "port", "It is 4000", **remember).returncode == 0
    supervised.start()
    supervised.wait(task)
    said = supervised.texts(task)
    assert "[Checkpoint from ada]" in said
    assert '{"goal": "A port", "now": "It is chosen"}' in said
    assert said.count("[Checkpoint from ada]") == 1
    assert said[-2:] == ["[What you remember]", "- port: It is 4000"]
