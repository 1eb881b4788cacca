import pytest

from fleet.domain.errors import nearest

COMMANDS = ("add", "list", "reopen", "set", "show", "status", "task", "tasks")


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("ad", COMMANDS, "add"),
        ("stauts", COMMANDS, "status"),
        ("shwo", COMMANDS, "show"),
        ("Status", COMMANDS, "status"),
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
        ("nope", COMMANDS),
        ("get", COMMANDS),
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
