"""A conversation of a real program, forked onto a branch of its own."""

from __future__ import annotations

import subprocess

import pytest

from fleet.testing.model_server import say
from tests.real.model_scratch import FLEET
from tests.real.terminal_scratch import TerminalScratch

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


@pytest.fixture(params=["claude", "codex", "opencode"])
def scratch(request, tmp_path):
    with TerminalScratch(
        request.param, tmp_path, [say("Hello."), say("Again."), say("More.")]
    ) as made:
        yield made
        subprocess.run(
            [FLEET, "kill", "other", "--force"],
            cwd=made.repo,
            env=made.env,
            check=False,
            timeout=60,
        )


def test_a_copy_of_the_conversation_goes_on_in_another_worktree(scratch):
    scratch("create", "seat", "--agent", "greeter", "--prompt", "Remember the word plum.")
    scratch.until_doing("waiting")
    tree = scratch.data("cd", "seat")["path"]
    subprocess.run(["sh", "-c", "echo new > uncommitted.txt"], cwd=tree, check=True)
    done = scratch("fork", "seat", "other", "--prompt", "Which word?")
    assert done.startswith("Created other (t-2)")
    scratch.until(lambda: len(scratch.server.turns) >= 2, why="its first turn")
    asked = scratch.server.turns[1]
    assert "plum" in str(asked.said)
    assert "Which word?" in str(asked.said)
    agents = {a["branch"]: a for a in scratch.data("list")}
    assert agents["seat"]["path"] != agents["other"]["path"]
    where = agents["other"]["path"]
    assert (
        subprocess.run(
            ["cat", "uncommitted.txt"], cwd=where, capture_output=True, text=True, check=True
        ).stdout
        == "new\n"
    )
    left = subprocess.run(
        ["git", "status", "--porcelain"], cwd=tree, capture_output=True, text=True, check=True
    )
    assert left.stdout == "?? uncommitted.txt\n"
    scratch("prompt", "seat", "Still there?")
    scratch.until(lambda: len(scratch.server.turns) >= 3, why="the first goes on")
    assert "Which word?" not in str(scratch.server.turns[2].said)
