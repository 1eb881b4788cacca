"""A program that was never started, or that cannot start, says so where the agent is created."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.scratch import Scratch

SCREENS = Path(__file__).parents[1] / "transcripts" / "screens" / "claude"
PATIENCE = 60  # seconds, for which `create` would wait


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    yield made
    made.type("kill", "*", "--force")


def install_claude(scratch, script: str) -> None:
    """A `claude` that does this."""
    folder = scratch.root / "bin"
    folder.mkdir()
    (folder / "claude").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "claude").chmod(0o755)
    scratch.env["PATH"] = f"{folder}:{scratch.env['PATH']}"


def shows(screen: str) -> str:
    return f"tail -n +2 {SCREENS / screen}.txt; exec sleep 300"


@pytest.mark.parametrize("screen", ["theme", "trust"])
def test_create_says_at_once_that_a_first_start_screen_waits(scratch, screen):
    install_claude(scratch, shows(screen))
    began = time.monotonic()
    words = ("create", "look", "--coder", "claude", "--prompt", "hi", "--wait", str(PATIENCE))
    said = scratch(*words)
    assert time.monotonic() - began < PATIENCE
    assert "has not begun yet" in said
    assert "shows the first-start screen of its program" in said
    assert "run `claude` once yourself in this repository" in said
    assert "fleet attach" in said


@pytest.mark.parametrize("screen", ["api-key", "sign-in", "platform-setup"])
def test_a_question_of_the_first_start_is_no_request_for_leave(scratch, screen):
    install_claude(scratch, shows(screen))
    said = scratch("create", "look", "--coder", "claude", "--prompt", "hi", "--wait", str(PATIENCE))
    assert "shows the first-start screen of its program" in said
    for word in ("approve", "deny"):
        refused = scratch.fails(word, "look", status=1)
        assert "first-start screen" in refused
        assert "Answer it there: fleet attach t-1" in refused


def test_why_a_program_could_not_start_is_read_from_its_screen(scratch):
    art = "printf '       ██▄█████▄██      *\\n\\n Unable to reach the service\\n\\n'"
    install_claude(scratch, f"{art}; echo '  The host name is not known.'; exit 1")
    why = "Exit status 1. Unable to reach the service; The host name is not known"
    assert why in scratch.fails("create", "look", "--coder", "claude", "--prompt", "hi", status=1)
    assert why in scratch("show", "t-1")
    assert "Unable to reach the service" in scratch("status", env={"COLUMNS": "100"})
