"""Whenever `fleet create` is killed or interrupted, the next command finds what is left.

    CRASH_FROM=1 CRASH_TO=200 pytest -n 0 -m slow tests/e2e/test_create_crashes.py

goes through every effect that the command has.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.crashes import LONG, PROMPT, CrashDesk
from tests.wait import LIMIT, until

# Of each, what has been done and what has not when it happens.
STEPS = [
    "mkdir task",
    "rename task.json",
    "write supervisor.lock",
    "write fleet.lock",
    "write worktree.making",
    "start git worktree",
    "remove worktree.making",
    "mkdir run",
    "link launch.json",
    "write keeper.log",
    "start tmux new-session",
]
PASTING = ["write terminal.lock", "start tmux load-buffer"]
POOLED = ["rename worktree", "rename gitdir"]
HOW = ("SIGKILL", "SIGINT")
STATUS = {"SIGKILL": -signal.SIGKILL, "SIGINT": 130}


@pytest.fixture
def scratch(tmp_path):
    made = CrashDesk(tmp_path)
    yield made
    made.close()


def survive(scratch, step: str, how: str, name: str, prompt: str = PROMPT) -> None:
    """By its name, or by its number: then it may be over before it gets there."""
    status = scratch.crash(step, how, "create", name, "--prompt", prompt)
    assert status == STATUS[how] or (step.isdigit() and status == 0), (step, how, status)
    scratch.let_time_pass()
    said = scratch.document("list", "--repair").get("notes", ())
    assert not said, (step, how, said)
    for agent in scratch.check():
        until(Path(agent["path"], "note.txt").exists, f"{agent['branch']} to be told, {step} {how}")


def clear_away(scratch) -> None:
    """Whatever they left behind, it is an agent like any other."""
    if any(a["branch"] != "old" for a in scratch.data("list")):
        scratch("kill", "new-*", "--delete-branch", "--force")
    assert [a["branch"] for a in scratch.check()] == ["old"]


@pytest.mark.parametrize("part", range(4))
def test_what_a_create_leaves_that_died_at_a_step_is_finished_by_the_next_command(scratch, part):
    scratch.env["FLEET_WORKSPACE_POOL"] = "0"
    for number, step in enumerate(STEPS[part::4]):
        survive(scratch, step, HOW[(part + number) % 2], f"new-{number}")
    clear_away(scratch)


def test_nor_is_anything_left_of_one_that_was_taking_a_used_worktree(scratch):
    for name in ("first", "second"):
        scratch("create", name)
    for name in ("first", "second"):
        scratch("kill", name, "--delete-branch")
    for number, step in enumerate(POOLED):
        survive(scratch, step, HOW[number % 2], f"new-{number}")
    clear_away(scratch)


@pytest.mark.parametrize("step", PASTING)
def test_nor_of_one_that_was_pasting_its_prompt(scratch, step):
    for how in HOW:
        survive(scratch, step, how, f"new-{how}", LONG)
    clear_away(scratch)


def test_every_one_of_these_steps_is_one_that_a_create_goes_through(scratch):
    given = set(scratch.effects("create", "given", "--prompt", PROMPT))
    pasted = set(scratch.effects("create", "pasted", "--prompt", LONG))
    assert given >= set(STEPS)
    assert pasted >= {*STEPS, *PASTING}
    assert given.isdisjoint(PASTING)


@pytest.mark.parametrize("step", ["write worktree.making", "start tmux new-session"])
def test_a_create_whose_supervisor_dies_meanwhile_finishes_by_itself(scratch, step):
    supervisor = scratch.start("run", env=scratch.armed(step, "SIGKILL"))
    try:
        until((scratch.home / "supervisor.json").exists, "the supervisor")
        assert scratch("create", "new", "--prompt", PROMPT).startswith("Created new")
        assert supervisor.wait(LIMIT) == -signal.SIGKILL
    finally:
        supervisor.kill()
        supervisor.communicate()
    assert {a["branch"] for a in scratch.check()} == {"old", "new"}


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("prompt", [PROMPT, LONG], ids=["given", "pasted"])
@pytest.mark.parametrize("how", HOW)
def test_the_same_at_every_effect_there_is(scratch, how, prompt, capsys):
    count = len(scratch.effects("create", "whole", "--prompt", prompt))
    scratch("kill", "whole", "--delete-branch")
    first, last = int(os.environ.get("CRASH_FROM", "1")), int(os.environ.get("CRASH_TO", count))
    for number in range(first, last + 1):
        try:
            survive(scratch, str(number), how, f"new-{number}", prompt)
            clear_away(scratch)
        except AssertionError as error:
            raise AssertionError(f"{how} at effect {number}: {error}") from None
    with capsys.disabled():
        print(f"\n{how} at each of {last - first + 1} effects: nothing lost, nothing unowned")
