"""OpenCode itself, unmodified, under a keeper, against a scripted model."""

from __future__ import annotations

import random
import subprocess
import time

import pytest

from fleet.adapters.coders.opencode.coder import OpenCodeCoder
from fleet.domain.run import Ending
from fleet.domain.transcript import SaidKind
from fleet.testing.model_server import Reply, Say, Tokens, call, fail, hang, say
from tests.real.driver import Place, assert_replays, is_quiet, left_of
from tests.real.programs import UNTIL_GO_ON

pytestmark = pytest.mark.real


@pytest.fixture
def place(tmp_path):
    made = Place(OpenCodeCoder(), tmp_path)
    yield made
    made.close()


def run(command: str) -> Reply:
    return call("bash", command=command, description="Try it")


def write(path: str) -> Reply:
    return call("write", filePath=path, content="x")


def odd_prompt() -> str:
    seeded = random.Random(7)
    odd = "aZ0 \t\n\r\"'\\`$!{}<>&|;é—字𝄞\u2028\x7f\u200b"
    return "/etc/hosts" + "".join(seeded.choices(odd, k=80_000)) + "end  \n\n"


def test_it_edits_a_file_and_ends_and_a_later_run_goes_on_with_the_same_conversation(place):
    prompt = odd_prompt()
    script = [
        call("read", filePath="{cwd}/hello.txt"),
        call("edit", filePath="{cwd}/hello.txt", oldString="world", newString="fleet"),
        Reply((Say("It greets the fleet."),), Tokens(input=100, output=7, cached=2000)),
        say("It was the fleet."),
    ]
    first = place.drive(script, prompt=prompt)
    outcome = first.run()
    assert (outcome.ending, outcome.exit_code) == (Ending.SUCCEEDED, 0)
    assert outcome.detail == "It greets the fleet."
    assert (place.cwd / "hello.txt").read_text() == "Hello, fleet.\n"
    assert (outcome.usage.input, outcome.usage.output) == (300, 27)
    assert (outcome.usage.cached, outcome.usage.context) == (2000, 2100)
    asked = place.asked[0]
    assert asked.said == (prompt,)
    assert asked.system.endswith("You are the test's own agent.")
    assert asked.headers["authorization"] == "Bearer sk-scripted"
    assert_replays(first)
    assert not left_of(first)

    later = place.again(first, prompt="Who was it?")
    outcome = later.run()
    assert outcome.detail == "It was the fleet."
    assert outcome.checkpoint.session == first.heard.session
    assert place.asked[-1].said == (prompt, "Who was it?")
    assert outcome.usage.input == 100


def test_words_enter_the_running_turn_and_after_it_begin_the_next(place):
    drive = place.drive([run(UNTIL_GO_ON), say("As you wish."), say("Good bye.")])
    drive.start().until_said(SaidKind.TOOL).say("Mind the gap.").say("And the step.").go_on()
    drive.until(lambda: is_quiet(drive))
    assert (drive.heard.turns, drive.heard.heard_words) == (1, 2)
    assert place.asked[1].said == ("Go.", "Mind the gap.", "And the step.")
    drive.say("One more thing.").until(lambda: is_quiet(drive))
    assert drive.end().detail == "Good bye."
    assert drive.heard.ended_turns == 2
    assert len({asked.conversation for asked in place.asked}) == 1
    assert_replays(drive)


def test_a_limit_whose_end_is_far_off_ends_the_run_and_names_that_end(place):
    before = time.time()
    drive = place.drive([fail(429, "Rate limit reached.", retry_after=3600)] * 9)
    outcome = drive.run()
    assert outcome.ending is Ending.RATE_LIMITED
    assert outcome.resume_at / 1e6 == pytest.approx(before + 3600, abs=60)
    assert len(place.asked) == 1


def test_an_agent_that_reads_can_write_nothing_but_its_notes(place):
    script = [
        write("{cwd}/new.txt"),
        run("touch new.txt"),
        run("fleet tasks > new.txt"),
        write("{home}/task/artifacts/PLAN.md"),
        call("read", filePath="{cwd}/hello.txt"),
        say("I only read."),
    ]
    drive = place.drive(script, permissions="read")
    assert drive.run().ending is Ending.SUCCEEDED
    failed = [said.failed for said in drive.said if said.kind is SaidKind.TOOL_RESULT]
    assert failed == [True, True, True, False, False]
    assert sorted(p.name for p in place.cwd.iterdir()) == [".git", "hello.txt"]
    assert (place.notes / "PLAN.md").exists()


def test_an_agent_that_edits_does_so_in_its_worktree_and_its_artifacts(place):
    outside = place.home / "outside"
    outside.mkdir()
    script = [
        write("{cwd}/in.txt"),
        run("git add -A && git commit -qm Work"),
        write("{home}/task/artifacts/PLAN.md"),
        write("{home}/outside/a"),
        run("touch {home}/outside/b"),
        run("cp hello.txt {home}/outside/c"),
        call("question", questions=[]),
        say("So it is."),
    ]
    drive = place.drive(script)
    assert drive.run().ending is Ending.SUCCEEDED
    failed = [said.failed for said in drive.said if said.kind is SaidKind.TOOL_RESULT]
    assert failed[:6] == [False] * 3 + [True] * 3
    assert list(outside.iterdir()) == []
    log = ["git", "log", "--format=%s", "work"]
    assert subprocess.check_output(log, cwd=place.repo, text=True).split() == ["Work", "Begin"]
    assert "question" not in place.asked[0].tools


def test_sigterm_ends_the_bridge_the_server_and_what_it_ran(place):
    drive = place.drive([run("sleep 4321")])
    drive.start().until_said(SaidKind.TOOL)
    outcome = drive.stop(10).over()
    assert outcome.ending is Ending.FAILED
    assert not left_of(drive)


def test_sigkill_loses_nothing_that_was_said_and_the_session_goes_on(place):
    drive = place.drive([run("ls"), hang(), say("It was 7.")], prompt="Remember 7.")
    drive.start().until_said(SaidKind.USAGE).until(lambda: len(place.asked) == 2)
    outcome = drive.stop(0).over()
    assert outcome.ending is Ending.FAILED
    assert not left_of(drive)
    assert drive.heard.usage.context == 100
    later = place.again(drive, prompt="What was it?")
    assert later.run().detail == "It was 7."
    assert "Remember 7." in place.asked[-1].said
