"""What a team keeps, by the commands: with nothing running."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.scratch import Scratch


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def data(scratch, *words):
    return json.loads(scratch(*words, "--json"))["data"]


def test_a_swarm_is_made_filled_and_ended(scratch):
    swarm = data(scratch, "swarm-create", "builders", "3")
    assert (swarm["name"], swarm["max_agents"]) == ("builders", 3)
    scratch("bd", "create", "Fix the login", "--parent", swarm["id"])
    assert "0/3" in scratch("swarms")
    assert data(scratch, "swarms")[0]["tasks"] == 1
    scratch("swarm-kill", swarm["id"])
    assert "No swarms." in scratch("swarms")
    assert data(scratch, "swarms", "--all")[0]["state"] == "cancelled"


def test_a_board_is_written_and_read(scratch):
    swarm = data(scratch, "swarm-create", "builders")["id"]
    post = data(scratch, "blackboard-post", swarm, "Tests are green", "--priority", "high")
    assert post["payload"] == '{"text":"Tests are green"}'
    assert "Tests are green" in scratch("blackboard", swarm)
    scratch("blackboard-read", post["id"])
    assert "Its board is empty." in scratch("blackboard", swarm, "--unread")
    scratch("blackboard-archive", post["id"])
    assert data(scratch, "blackboard", swarm) == []
    assert scratch.type("blackboard-archive").returncode == 2


def test_mail_memory_checkpoints_and_claims(scratch):
    mail = data(scratch, "mail", "send", "ada", "Look", "here", "--subject", "Hi")
    assert "Hi" in scratch("mail", "list", "--unread")
    assert data(scratch, "mail", "read", mail["id"])["text"] == "Look here"
    scratch("memory", "store", "db/port", "It", "is", "5433", "--tag", "postgres")
    assert data(scratch, "memory", "recall", "db/port")["value"] == "It is 5433"
    assert "5433" in scratch("memory", "search", "POSTGRES", "port")
    assert "db/port" in scratch("memory", "list")
    saved = data(scratch, "checkpoint", "save", "Login", "Half done", "--next", "The rest")
    assert "Login" in scratch("checkpoints")
    assert data(scratch, "checkpoint", "load")["id"] == saved["id"]
    assert data(scratch, "checkpoint", "accept", saved["id"])["status"] == "accepted"
    refused = scratch.type("checkpoint", "reject", saved["id"])
    assert refused.returncode == 1
    scratch("claims", "take", "src/login.py")
    assert "src/login.py" in scratch("claims", "list")
    scratch("claims", "release", "src/login.py")
    assert "No files are claimed." in scratch("claims", "list")


def test_who_was_seen_and_who_may_come(scratch):
    assert "coordinator" in scratch("teams")
    assert "No members have been seen yet." in scratch("teams", "red")
    assert scratch.type("mail", "broadcast", "Hear!").returncode == 1
    token = data(scratch, "token", "create", "bob", "--role", "worker", "--team", "red")
    assert token["token"].count(".") == 2
    assert "bob" in scratch("token", "list")
    assert "Revoked all tokens of bob made up to " in scratch("token", "revoke", "bob")
    assert "No tokens." in scratch("token", "list")
    assert data(scratch, "token", "list", "--all")[0]["token"] == ""


def test_a_coordinators_token_is_said_to_count_in_every_team(scratch):
    for words in (("create", "root"), ("enrol",)):
        made = scratch.type("token", *words, "--role", "coordinator", "--team", "red")
        assert (made.returncode, "acts in every team" in made.stderr) == (0, True)
        assert scratch.type("token", *words, "--role", "worker").stderr == ""


def test_what_was_done_is_said_in_a_sentence(scratch):
    assert re.fullmatch(r"Sent \S+ to ada\.\n", scratch("mail", "send", "ada", "Hello"))
    assert scratch("memory", "store", "db", "postgres") == "Stored db (fact).\n"
    saved = scratch("checkpoint", "save", "Login", "Half done")
    assert re.fullmatch(r"Saved \S+ for ada\.\n", saved)
    assert scratch("claims", "take", "a.py").startswith("Claimed a.py until 20")
    assert scratch("claims", "release", "a.py") == "Released a.py.\n"


def test_what_is_shown_has_no_raw_times_and_no_records(scratch):
    mail = data(scratch, "mail", "send", "ada", "Hello")["id"]
    scratch("memory", "store", "db", "postgres")
    scratch("checkpoint", "save", "Login", "Half done", "--next", "Test it", "--blocker", "DNS")
    pages = [
        scratch("mail", "read", mail),
        scratch("memory", "recall", "db"),
        checkpoint := scratch("checkpoint", "load"),
    ]
    for page in pages:
        assert not re.search(r"\d{12}|\w\(|None", page), page
    assert [" ".join(line.split()) for line in checkpoint.splitlines()[-4:]] == [
        *("goal Login", "now Half done", "blockers DNS", "next Test it")
    ]


@pytest.mark.parametrize("name", ["mail", "memory", "claims", "chat", "token"])
def test_a_group_alone_lists(scratch, name):
    scratch("mail", "send", "ada", "Hello")
    scratch("memory", "store", "db", "postgres")
    scratch("claims", "take", "a.py")
    assert scratch(name)
    assert scratch.document(name) == scratch.document(name, "list")


def test_a_swarm_says_how_commands_take_it(scratch):
    made = scratch.type("swarm-create", "builders", "3")
    assert made.stderr == 'Commands take it by its id: fleet add "TITLE" --swarm t-1\n'
    scratch("add", "Fix the login", "--swarm", "t-1")
    assert scratch.data("swarms")[0]["tasks"] == 1
