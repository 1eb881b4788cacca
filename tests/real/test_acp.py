"""A program that speaks ACP (`opencode acp`, unmodified) under a keeper, with a scripted model."""

from __future__ import annotations

import pytest

from fleet.adapters.coders.acp.coder import AcpCoder
from fleet.domain.run import Ending
from fleet.domain.transcript import SaidKind
from fleet.testing.model_server import Reply, Say, Tokens, call, hang, say
from tests.real.acp_agent import opencode
from tests.real.driver import Place, assert_replays, is_quiet, left_of
from tests.real.programs import UNTIL_GO_ON

pytestmark = pytest.mark.real


@pytest.fixture
def place(tmp_path):
    made = Place(AcpCoder(), tmp_path)
    yield made
    made.close()


def test_it_edits_a_file_hears_words_and_a_later_run_goes_on(place):
    script = [
        call("read", filePath="{cwd}/hello.txt"),
        call("edit", filePath="{cwd}/hello.txt", oldString="world", newString="fleet"),
        call("bash", command=UNTIL_GO_ON, description="x"),
        Reply((Say("It greets the fleet."),), Tokens(input=100, output=7, cached=2000)),
        say("It was the fleet."),
    ]
    first = opencode(place, script)
    first.start().until(lambda: len(place.asked) == 3).until_said(SaidKind.TOOL, "bash")
    first.say("Mind the gap.").go_on().until(lambda: is_quiet(first))
    outcome = first.end()
    assert (outcome.ending, outcome.exit_code) == (Ending.SUCCEEDED, 0)
    assert (place.cwd / "hello.txt").read_text() == "Hello, fleet.\n"
    assert place.asked[3].said == ("You are the test's own agent.\n\nGo.", "Mind the gap.")
    assert (outcome.usage.context, outcome.usage.cached) == (2100, 2000)
    assert_replays(first)
    assert not left_of(first)

    later = place.again(first, prompt="Who was it?")
    outcome = later.run()
    assert outcome.detail == "It was the fleet."
    assert place.asked[-1].said[-1] == "Who was it?"
    assert place.asked[-1].said[0].startswith("You are the test's own agent.")


def test_what_it_asks_for_is_granted_inside_and_refused_outside(place):
    rules = {"bash": "ask", "external_directory": "ask"}
    script = [
        call("bash", command="touch in.txt", description="x"),
        call("bash", command="touch {home}/out.txt", description="x"),
    ]
    outcome = opencode(place, script, rules=rules).run()
    assert (place.cwd / "in.txt").exists()
    assert not (place.home / "out.txt").exists()
    assert outcome.ending is Ending.FAILED
    assert "refused" in outcome.detail


def test_an_agent_that_reads_is_granted_nothing_that_writes(place):
    script = [call("bash", command="touch in.txt", description="x")]
    opencode(place, script, rules={"bash": "ask"}, permissions="read").run()
    assert not (place.cwd / "in.txt").exists()


def test_sigterm_ends_it_and_what_it_ran(place):
    drive = opencode(place, [call("bash", command="sleep 4321", description="x"), hang()])
    drive.start().until_said(SaidKind.TOOL)
    drive.stop(10).over()
    assert drive.heard.turns > drive.heard.ended_turns
    assert not left_of(drive)
