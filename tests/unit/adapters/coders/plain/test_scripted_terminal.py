"""The scripted program with a screen is started as the real ones are."""

from __future__ import annotations

from fleet.adapters.coders.plain.scripted import ScriptedCoder
from tests.unit.adapters.coders.watched import launched

SCRIPTED = ScriptedCoder()


def test_the_first_prompt_is_the_last_argument_whatever_is_in_it():
    for prompt in ("-x", "a\tb\n", "\\", "x" * 120_000, "ä" * 60_000):
        launch = launched(SCRIPTED, prompt)
        assert launch.argv[-2:] == ("--", prompt)
        assert launch.stdin is None


def test_what_can_be_no_argument_is_left_to_be_pasted():
    for prompt in ("x" * 120_001, "ä" * 60_001):
        launch = launched(SCRIPTED, prompt)
        assert (launch.stdin, "--" in launch.argv) == (prompt, False)
    resumed = launched(SCRIPTED, "Go on.", session="s")  # as OpenCode, which would drop it
    assert (resumed.stdin, resumed.argv[-2:]) == ("Go on.", ("--resume", "s"))


def test_without_a_prompt_it_waits_for_one():
    launch = launched(SCRIPTED, "")
    assert (launch.stdin, "--" in launch.argv) == (None, False)
