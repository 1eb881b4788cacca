"""What a team keeps, by the commands: with nothing running."""

from __future__ import annotations

import json

import pytest
from desk import Desk


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def data(desk, *words):
    return json.loads(desk(*words, "--json"))["data"]


def test_a_swarm_is_made_filled_and_ended(desk):
    swarm = data(desk, "swarm-create", "builders", "3")
    assert (swarm["name"], swarm["max_agents"]) == ("builders", 3)
    desk("bd", "create", "Fix the login", "--parent", swarm["id"])
    assert "0/3" in desk("swarms")
    assert data(desk, "swarms")[0]["tasks"] == 1
    desk("swarm-kill", swarm["id"])
    assert "No swarms." in desk("swarms")
    assert data(desk, "swarms", "--all")[0]["state"] == "cancelled"


def test_a_board_is_written_and_read(desk):
    swarm = data(desk, "swarm-create", "builders")["id"]
    post = data(desk, "blackboard-post", swarm, "Tests are green", "--priority", "high")
    assert post["payload"] == '{"text":"Tests are green"}'
    assert "Tests are green" in desk("blackboard", swarm)
    desk("blackboard-read", post["id"])
    assert "Nothing is on its board." in desk("blackboard", swarm, "--unread")
    desk("blackboard-archive", post["id"])
    assert data(desk, "blackboard", swarm) == []
    assert desk.type("blackboard-archive").returncode == 2


def test_mail_memory_checkpoints_and_claims(desk):
    mail = data(desk, "mail", "send", "ada", "Look", "here", "--subject", "Hi")
    assert "Hi" in desk("mail", "list", "--unread")
    assert data(desk, "mail", "read", mail["id"])["text"] == "Look here"
    desk("memory", "store", "db/port", "It", "is", "5433", "--tag", "postgres")
    assert data(desk, "memory", "recall", "db/port")["value"] == "It is 5433"
    assert "5433" in desk("memory", "search", "POSTGRES", "port")
    assert "db/port" in desk("memory", "list")
    saved = data(desk, "checkpoint", "save", "Login", "Half done", "--next", "The rest")
    assert "Login" in desk("checkpoints")
    assert data(desk, "checkpoint", "load")["id"] == saved["id"]
    assert data(desk, "checkpoint", "accept", saved["id"])["status"] == "accepted"
    refused = desk.type("checkpoint", "reject", saved["id"])
    assert refused.returncode == 1
    desk("claims", "take", "src/login.py")
    assert "src/login.py" in desk("claims", "list")
    desk("claims", "release", "src/login.py")
    assert "No file is claimed." in desk("claims", "list")


def test_who_was_seen_and_who_may_come(desk):
    assert "coordinator" in desk("teams")
    assert "Nobody has been seen." in desk("teams", "red")
    assert desk.type("mail", "broadcast", "Hear!").returncode == 1
    token = data(desk, "token", "create", "bob", "--role", "worker", "--team", "red")
    assert token["token"].count(".") == 2
    assert "bob" in desk("token", "list")
    assert f"Revoked {token['id']} of bob." in desk("token", "revoke", "bob")
    assert "No tokens." in desk("token", "list")
    assert data(desk, "token", "list", "--all")[0]["token"] == ""
