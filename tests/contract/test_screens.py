"""What is read from a screen, on screens that the real programs have shown."""

import tomllib
from pathlib import Path

import pytest

from fleet.adapters.coders import having
from fleet.adapters.tmux.screens import always_on, permission_on, program_of, read_screen
from fleet.ports import ScreenState

SCREENS = Path(__file__).parents[1] / "transcripts" / "screens"
EXPECTED = tomllib.loads((SCREENS / "expected.toml").read_text())
RECORDED = sorted((f.parent.name, f.stem) for f in SCREENS.glob("*/*.txt"))


def recorded(program, case):
    first, _, text = (SCREENS / program / f"{case}.txt").read_text().partition("\n")
    _, column, line = first.split()
    return text.rstrip("\n"), (int(column), int(line))


@pytest.mark.parametrize(("program", "case"), RECORDED)
def test_a_recorded_screen_is_read_as_what_it_shows(program, case):
    state, rule = read_screen(program, *recorded(program, case))
    assert f"{state} {rule}" == EXPECTED[program][case]


ASKS = {
    ("claude", "permission-command"): "Bash command Make a file outside touch ../outside.txt"
    " Do you want to proceed?",
    ("claude", "permission-write"): "Create file new.txt 1 new Do you want to create new.txt?",
    ("codex", "permission-command"): "Would you like to run the following command?"
    " Environment: local Reason: May I look? $ ls /",
    ("codex", "permission-write"): "Would you like to run the following command?"
    " Environment: local Reason: May I remove it? $ rm -rf /nowhere",
    ("opencode", "permission-command"): "← Access external directory /src Patterns - /src/*",
    ("opencode", "permission-write"): "→ Edit new.txt 1 + new",
}


@pytest.mark.parametrize(("program", "case"), RECORDED)
def test_what_a_dialog_asks_leave_for_is_read_from_its_screen(program, case):
    assert permission_on(program, recorded(program, case)[0]) == ASKS.get((program, case), "")


ACCEPT_EDITS = (
    "Yes, and switch to accept edits (auto-approve file edits and common file commands)"
    " for this session (shift+tab)"
)
ALWAYS = {
    ("claude", "permission-command"): (
        "Yes, and always allow access to /src from this project", "2",
    ),
    ("claude", "permission-write"): (
        ACCEPT_EDITS, "2",
    ),
    ("codex", "permission-command"): (
        "Yes, and don't ask again for commands that start with `ls /`", "p",
    ),
    ("codex", "permission-write"): (
        "Yes, and don't ask again for commands that start with `rm -rf /nowhere`", "p",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("program", "case"), RECORDED)
def test_the_answer_for_good_is_read_from_the_dialog_that_has_one(program, case):
    assert always_on(program, recorded(program, case)[0]) == ALWAYS.get((program, case), ("", ""))


def test_what_would_allow_everything_is_never_taken_for_the_answer_for_good():
    text, _ = recorded("claude", "permission-command")
    lines = [line for line in text.split("\n") if "   2. Yes" not in line]
    only = "\n".join(lines).replace("   3. Yes", "   2. Yes").replace("   4. No", "   3. No")
    assert "2. Yes, and switch to auto mode" in only
    assert permission_on("claude", only)
    assert always_on("claude", only).key == ""


def test_an_answer_for_good_that_is_longer_than_a_line_is_read_as_a_whole():
    text, _ = recorded("codex", "permission-command")
    long = text.replace("start with `ls /` (p)", "start with\n     `ls --all /` (p)")
    words = "Yes, and don't ask again for commands that start with `ls --all /`"
    assert always_on("codex", long) == (words, "p")


def test_a_question_is_no_request_for_leave():
    """Its first answer is not `yes`."""
    text, _ = recorded("claude", "permission-command")
    assert permission_on("claude", text.replace("1. Yes\n", "1. SQLite\n")) == ""


def test_every_expectation_has_its_screen():
    assert {(p, c) for p, cases in EXPECTED.items() for c in cases} == set(RECORDED)


@pytest.mark.parametrize(("program", "case"), RECORDED)
def test_a_screen_that_is_half_drawn_is_never_taken_for_one_that_waits(program, case):
    text, cursor = recorded(program, case)
    if EXPECTED[program][case].startswith("ready"):
        return
    lines = text.split("\n")
    for cut in range(len(lines)):
        state, _ = read_screen(program, "\n".join(lines[:cut]), cursor)
        assert state is not ScreenState.READY


@pytest.mark.parametrize("program", [*having("screens"), "full_screen", "some-program"])
@pytest.mark.parametrize("text", ["", "\n\n", "$ ls\nREADME.md\n$ ", "Segmentation fault", "│ > "])
def test_a_screen_that_no_rule_knows_asserts_nothing(program, text):
    assert read_screen(program, text) == (ScreenState.UNKNOWN, "")


def test_what_an_agent_writes_about_dialogs_is_not_one():
    text, cursor = recorded("claude", "ready")
    said = "● Press Esc to cancel · Tab to amend\n  esc to interrupt\n  Allow once   Allow always"
    lines = text.split("\n")
    lines[8:11] = said.split("\n")
    assert read_screen("claude", "\n".join(lines), cursor)[0] is ScreenState.READY


def test_a_program_is_known_by_the_words_that_start_it():
    assert program_of(["/opt/bin/claude", "--model", "codex"]) == "claude"
    assert program_of(["bwrap", "--ro-bind", "/", "/", "--", "codex"]) == "codex"
    assert program_of(["python", "-m", "fleet.testing.full_screen"]) == "full_screen"
    assert program_of(["vim"]) == ""
