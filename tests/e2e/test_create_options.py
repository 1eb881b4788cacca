"""`create`, `spawn` and `add` take the same options, and take no name that somebody has."""

import json

import pytest

from tests.e2e.scratch import Scratch


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    yield made
    made.type("kill", "*", "--force")


def spec(scratch, task):
    return json.loads(scratch("show", task, "--json"))["data"]["spec"]


@pytest.mark.parametrize("command", ["create", "spawn", "add"])
def test_they_take_coder_model_and_permissions(scratch, command):
    options = ("--coder", "scripted", "--model", "big", "--permissions", "read")
    if command == "add":
        scratch("add", "Look", "--branch", "look", *options)
    elif command == "spawn":
        scratch("spawn", "look", "say hi", "--spawn-mode", "process", *options)
    else:
        scratch("create", "look", "--headless", "-p", "say hi", *options)
    made = spec(scratch, "t-1")
    assert (made["coder"], made["model"]) == ("scripted", "big")
    assert made["limits"]["permissions"] == "read"
    assert "permissions  read" in scratch("show", "t-1").replace("   ", " ").replace("  ", "  ")
    wrong = scratch.type(command, "other", "--permissions", "root")
    assert wrong.returncode == 2
    assert "permissions" in wrong.stderr


def test_permissions_reach_the_program(scratch):
    settings = "agents:\n  mine:\n    coder: command\n    command: [echo, 'may {permissions}']\n"
    (scratch.repo / "fleet.yaml").write_text(settings)
    scratch("trust")
    scratch("add", "As declared", "--agent", "mine")
    scratch("add", "More", "--agent", "mine", "--permissions", "full")
    scratch("run", "--once")
    assert "may edit" in scratch("logs", "t-1")
    assert "may full" in scratch("logs", "t-2")


def test_a_branch_that_exists_is_refused_with_what_to_type(scratch):
    scratch.git("branch", "fix-login")
    for words in (
        ("create", "fix-login", "--headless", "-p", "say hi"),
        ("create", "main", "--headless", "-p", "say hi"),
        ("add", "Fix", "--branch", "fix-login"),
        ("multi", "ok:say hi", "fix-login:say hi", "--headless"),
    ):
        done = scratch.type(*words)
        assert done.returncode == 1, words
        assert "There is already a branch " in done.stderr
        assert "--base " in done.stderr
    assert json.loads(scratch("tasks", "--all", "--json"))["data"] == []
    assert scratch.git("branch", "--format=%(refname:short)").split() == ["fix-login", "main"]
    scratch("create", "again", "--base", "fix-login", "--headless", "-p", "say hi")


def test_a_branch_that_another_agent_has_leads_to_that_agent(scratch):
    scratch("create", "fix-login", "--headless", "-p", "sleep 60")
    done = scratch.type("create", "fix-login", "--headless", "-p", "say hi")
    assert done.returncode == 1
    assert "t-1 already works on the branch fix-login." in done.stderr
    assert "fleet attach fix-login" in done.stderr
    scratch("add", "Queued", "--branch", "queued")
    assert (
        "t-2 already works on the branch queued."
        in scratch.type("add", "Also", "--branch", "queued").stderr
    )


def test_an_address_is_no_branch_and_no_prompt(scratch):
    done = scratch.type("multi", "https://example.org/x:y", "--headless")
    assert done.returncode == 2
    assert "is an address, not a branch and a prompt" in done.stderr
    assert scratch.git("branch", "--format=%(refname:short)").split() == ["main"]


@pytest.mark.parametrize(
    "words", [("create", "look", "--headless", "-p", "say hi"), ("add", "Look")]
)
def test_changes_that_an_agent_will_not_see_are_mentioned(scratch, words):
    (scratch.repo / "file").write_text("one\n")
    scratch.git("add", "file")
    scratch.git("commit", "-q", "-m", "file")
    (scratch.repo / "file").write_text("two\n")
    done = scratch.type(*words)
    assert done.returncode == 0
    assert "1 uncommitted change in this checkout" in done.stderr
    assert done.stderr.count("uncommitted") == 1


def test_a_file_of_tasks_has_the_permissions_and_gives_them_back(scratch):
    (scratch.repo / "tasks.yaml").write_text("tasks:\n- {title: Look, permissions: read}\n")
    scratch("add", "--file", "tasks.yaml")
    assert spec(scratch, "t-1")["limits"]["permissions"] == "read"
    assert "permissions: read" in scratch("tasks", "--export")
