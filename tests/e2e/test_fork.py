"""Forking an agent, where that needs no real program."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    yield made
    for agent in made.data("list", "--everywhere"):
        made.type("kill", agent["task"], "--force")


def test_a_program_that_cannot_fork_is_refused_and_nothing_is_left(scratch):
    scratch("create", "seat", "--prompt", "say Hi")
    words = scratch.fails("fork", "seat", "other", status=1)
    assert "cannot continue a copy of a conversation of scripted" in words
    assert "fleet create BRANCH --base" in words
    assert [task["id"] for task in scratch.data("tasks", "--all")] == ["t-1"]
    assert scratch.git("branch", "--list", "other") == ""
