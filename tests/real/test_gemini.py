"""Gemini CLI itself, unmodified, under a keeper, with a scripted model."""

from __future__ import annotations

import pytest

from fleet.adapters.coders.acp.gemini import GeminiCoder
from fleet.domain.run import Ending
from fleet.domain.transcript import SaidKind
from fleet.testing.model_server import call, hang, say
from tests.real.driver import Place, assert_replays, is_quiet, left_of

pytestmark = pytest.mark.real


@pytest.fixture
def place(tmp_path):
    made = Place(GeminiCoder(), tmp_path)
    yield made
    made.close()


def shell(command: str):
    return call("run_shell_command", command=command)


def test_it_edits_a_file_commits_hears_words_between_turns_and_ends(place):
    script = [
        call("replace", file_path="{cwd}/hello.txt", old_string="world", new_string="fleet",
             instruction="Greet the fleet."),
        shell("git commit -qam Work && git log --format=%s"),
        call("write_file", file_path="{home}/task/artifacts/PLAN.md", content="plan"),
        say("It greets the fleet.", input=120, output=7),
        say("Minded."),
    ]  # fmt: skip
    run = place.drive(script)
    run.start().until_said(SaidKind.TOOL)
    assert run.listener.words("Mind the gap.") is None
    run.until_turn_ends().say("Mind the gap.").until(lambda: is_quiet(run))
    outcome = run.end()
    assert (outcome.ending, outcome.exit_code) == (Ending.SUCCEEDED, 0)
    assert outcome.detail == "Minded."
    assert (place.cwd / "hello.txt").read_text() == "Hello, fleet.\n"
    assert "Work" in place.asked[2].results[1]
    assert (place.notes / "PLAN.md").read_text() == "plan"
    assert place.asked[-1].said[-1] == "Mind the gap."
    assert any("You are the test's own agent." in words for words in place.asked[0].said)
    assert place.asked[0].headers["x-goog-api-key"] == "sk-scripted"
    assert outcome.usage.input == 520
    assert outcome.usage.context > 100
    assert_replays(run)
    assert not left_of(run)


def test_its_tools_write_nothing_outside_and_an_agent_that_reads_writes_nothing(place):
    outside = [call("write_file", file_path="{home}/out.txt", content="x"), say("I may not.")]
    assert place.drive(outside, permissions="full").run().ending is Ending.SUCCEEDED
    assert not (place.home / "out.txt").exists()
    inside = [call("write_file", file_path="{cwd}/new.txt", content="x"), shell("touch new.txt")]
    place.drive(inside, permissions="read").run()
    assert not (place.cwd / "new.txt").exists()


def test_it_is_ended_with_what_it_ran(place):
    run = place.drive([shell("sleep 4321"), hang()])
    run.start().until_said(SaidKind.TOOL).until(lambda: place.asked)
    run.stop(1).over()
    assert not left_of(run)
