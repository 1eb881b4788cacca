import pytest

from fleet.cli.main import COMMANDS
from fleet.domain.errors import nearest

SLIPS = {
    "ad": "add",
    "addd": "add",
    "stauts": "status",
    "Status": "status",
    "staus": "status",
    "taks": "task",
    "lsit": "list",
    "retyr": "retry",
    "rety": "retry",
    "shwo": "show",
    "merg": "merge",
    "mrege": "merge",
    "cancle": "cancel",
    "cancell": "cancel",
    "opne": "open",
    "clos": "close",
    "halp": "help",
    "hlep": "help",
    "nodez": "nodes",
    "agentz": "agents",
    "serv": "serve",
    "server": "serve",
    "init-": "init",
    "nit": "init",
    "rnu": "run",
    "wroktree": "worktree",
    "worktre": "worktree",
    "sendback": "send-back",
    "sarch": "search",
    "benchmrak": "benchmark",
    "bencmarck": "benchmark",
    "completoin": "completion",
    "blackbord-post": "blackboard-post",
    "questoins": "questions",
    "reveiw": "review",
}
NO_COMMANDS = ["nope", "foo", "xyz", "done", "watc", "commit", "rm", "ls", "push", "x", ""]


@pytest.mark.parametrize(("typed", "meant"), SLIPS.items())
def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(typed, meant):
    """Perhaps with another one that is as near: `stauts` is `status` or `stats`."""
    assert f"'{meant}'" in nearest(typed, COMMANDS)


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("--jsno", ("--json", "--help"), "--json"),
        ("mac-mni", ("mac-mini", "mac-studio"), "mac-mini"),
        ("heavycoder", ("heavy-coder", "light-coder"), "heavy-coder"),
        ("workspace.rot", ("workspace.root", "workspace.base"), "workspace.root"),
        ("fix/lgoin", ("fix/login", "fix/logout"), "fix/login"),
    ],
)
def test_a_slip_is_answered_with_the_name_that_was_meant(typed, known, meant):
    assert nearest(typed, known) == f"Did you mean '{meant}'?"


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        *((word, COMMANDS) for word in NO_COMMANDS),
        ("get", ("set", "show")),
        ("workspace.foo", ("workspace.root", "workspace.base")),
        ("fix/search", ("fix/login",)),
        ("FLEET_URL", ("FLEET_STORE_URL",)),
        ("x", ()),
    ],
)
def test_another_word_is_not_answered_with_a_guess(typed, known):
    assert nearest(typed, known) == ""


def test_two_names_that_are_as_near_are_both_offered():
    assert nearest("tassk", COMMANDS) == "Did you mean 'task' or 'tasks'?"
