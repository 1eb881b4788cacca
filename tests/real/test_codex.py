"""Codex itself, unmodified, under a keeper, against a scripted model."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fleet.adapters.coders.codex.coder import CodexCoder
from fleet.adapters.processes.keepers import Keepers
from fleet.domain.run import Ending
from fleet.domain.transcript import SaidKind
from fleet.testing.model_server import (
    Fail,
    Reply,
    Say,
    Tokens,
    Wait,
    call,
    fail,
    hang,
    say,
)  # fmt: skip
from tests.real.driver import Place, assert_replays, is_quiet, left_of
from tests.real.programs import UNTIL_GO_ON

pytestmark = pytest.mark.real

NO_RETRY = ("-c", "model_providers.fleet.stream_max_retries=0")
ONE_RETRY = ("-c", "model_providers.fleet.stream_max_retries=1")
USED_UP = {"type": "usage_limit_reached", "message": "The usage limit has been reached"}
RESET = 1_900_000_000
WINDOW = {
    "x-codex-primary-used-percent": "100",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": str(RESET),
}


@pytest.fixture
def place(tmp_path):
    made = Place(CodexCoder(), tmp_path)
    yield made
    made.close()


@pytest.fixture
def elsewhere():
    """Not below /tmp, where its sandbox lets it write, wherever this repository lies."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def run(command: str, **more) -> Reply:
    return call("exec_command", cmd=command, **more)


def test_it_edits_a_file_where_it_works_commits_and_ends(place):
    drive = place.drive([
        run("sed -i s/world/fleet/ hello.txt && git commit -qam Work && echo Committed."),
        Reply((Say("It greets the fleet."),), Tokens(input=100, output=7, cached=2000)),
    ])  # fmt: skip
    outcome = drive.run()
    assert (outcome.ending, outcome.exit_code) == (Ending.SUCCEEDED, 0)
    assert outcome.detail == "It greets the fleet."
    assert (place.cwd / "hello.txt").read_text() == "Hello, fleet.\n"
    assert "Committed." in place.asked[1].results[0]
    assert (outcome.usage.input, outcome.usage.output) == (200, 17)
    assert (outcome.usage.cached, outcome.usage.context) == (2000, 2100)
    first = place.asked[0]
    assert "You are the test's own agent." in first.system
    assert first.headers["authorization"] == "Bearer sk-scripted"
    assert first.model == "scripted"
    assert_replays(drive)
    assert not left_of(drive)


def test_it_leaves_the_users_settings_as_they_are(place):
    place.drive([say("Done.")]).run()
    assert not (place.home / ".codex" / "config.toml").exists()


def test_its_commands_have_the_environment_of_the_run_whatever_the_users_profile_says(place):
    (place.home / ".profile").write_text("export PATH=/usr/bin:/bin MARK=profile\n")
    place.drive([run("echo $MARK; command -v codex"), say("Seen.")], env={"MARK": "run"}).run()
    assert "\nrun\n/" in place.asked[1].results[0]


def test_words_in_the_middle_of_a_turn_enter_that_turn(place):
    drive = place.drive([run(UNTIL_GO_ON), say("As you wish.")])
    drive.start().until_said(SaidKind.TOOL).say("Mind the gap.").say("And the step.").go_on()
    outcome = drive.until(lambda: is_quiet(drive)).end()
    assert (drive.heard.turns, drive.heard.heard_words) == (1, 2)
    assert outcome.detail == "As you wish."
    assert place.asked[1].said[-2:] == ("Mind the gap.", "And the step.")
    assert len({asked.conversation for asked in place.asked}) == 1
    assert_replays(drive)


def test_words_while_the_model_speaks_are_heard_before_it_has_finished(place):
    drive = place.drive([Reply((Say("I think"), Wait())), say("As you wish.")])
    drive.start().until(lambda: place.asked).say("Stop thinking.")
    outcome = drive.until(lambda: is_quiet(drive)).end()
    assert outcome.detail == "As you wish."
    assert place.asked[1].said[-1] == "Stop thinking."


def test_words_after_a_turn_are_the_next_one(place):
    drive = place.drive([say("First."), say("Second.")])
    drive.start().until_turn_ends().say("And then?").until(lambda: is_quiet(drive))
    assert drive.end().detail == "Second."
    assert drive.heard.ended_turns == 2


def test_another_supervisor_takes_over_in_the_middle_and_goes_on(place):
    drive = place.drive([run(UNTIL_GO_ON), say("Done.")])
    drive.start().until_said(SaidKind.TOOL)
    later = type(drive)(drive.coder, Keepers(place.keepers.folder("x").parent), drive.brief)
    later.listener = drive.coder.listen(later.keepers.opening(drive.brief.run_id))
    later.go_on().until_turn_ends()
    assert later.end().ending is Ending.SUCCEEDED
    assert len(place.asked) == 2


def test_a_later_run_goes_on_with_the_same_conversation_and_counts_only_itself(place):
    script = [say("I shall remember 7."), run("echo x > x.txt"), say("It was 7.")]
    first = place.drive(script, prompt="Remember 7.")
    first.run()
    reading = {**first.brief.options, "permissions": "read"}
    later = place.again(first, prompt="What was it?", options=reading)
    outcome = later.run()
    assert outcome.detail == "It was 7."
    assert outcome.checkpoint.session == first.heard.session
    assert {"Remember 7.", "What was it?"} <= set(place.asked[1].said)
    assert outcome.usage.input == 200
    assert not (place.cwd / "x.txt").exists()


def test_a_429_that_it_retries_by_itself_costs_nothing(place):
    script = [fail(429, "Slow down.", retry_after=0), say("At last.")]
    drive = place.drive(script, extra_args=ONE_RETRY)
    assert drive.run().ending is Ending.SUCCEEDED
    assert not any(said.kind in {SaidKind.LIMIT, SaidKind.ERROR} for said in drive.said)


def test_a_429_at_the_end_is_a_rate_limit_and_no_failure(place):
    drive = place.drive([fail(429, "Slow down.", retry_after=0)] * 9, extra_args=NO_RETRY)
    assert drive.run().ending is Ending.RATE_LIMITED


def test_a_subscription_that_is_used_up_says_when_it_comes_back(place):
    script = [Reply(headers=WINDOW, fail=Fail(429, body={"error": USED_UP}))]
    outcome = place.drive(script).run()
    assert outcome.ending is Ending.RATE_LIMITED
    assert outcome.resume_at == RESET * 1_000_000


def test_a_wrong_key_is_a_failure_that_says_so(place):
    outcome = place.drive([fail(401, "Bad key.")] * 9, extra_args=NO_RETRY).run()
    assert outcome.ending is Ending.FAILED
    assert "Bad key." in outcome.detail


def test_an_agent_that_reads_can_write_nothing_but_its_notes(place):
    script = [
        run('touch new.txt; python3 -c \'open("new.txt", "w")\'; git commit --allow-empty -m x'),
        run("echo plan > {home}/task/artifacts/PLAN.md; cat hello.txt"),
        say("I only read."),
    ]
    assert place.drive(script, permissions="read").run().ending is Ending.SUCCEEDED
    assert sorted(p.name for p in place.cwd.iterdir()) == [".git", "hello.txt"]
    assert "Hello, world." in place.asked[2].results[1]
    assert (place.notes / "PLAN.md").read_text() == "plan\n"
    assert commits(place) == ["Begin"]


def test_an_agent_that_edits_cannot_write_outside_whatever_program_it_runs(place, elsewhere):
    hook = place.repo / ".git" / "hooks" / "pre-commit"
    script = [
        run(f"python3 -c 'open(\"{elsewhere}/a\", \"w\")'"),
        run(f"echo x > {elsewhere}/b; cd {elsewhere} && touch c; echo x > {hook}"),
        run("touch made.txt && echo x > {home}/task/artifacts/PLAN.md && git add -A && "
            "git commit -qm Work"),
        say("So it is."),
    ]  # fmt: skip
    assert place.drive(script).run().ending is Ending.SUCCEEDED
    assert list(elsewhere.iterdir()) == []
    assert not hook.exists()
    assert (place.notes / "PLAN.md").exists()
    assert commits(place) == ["Work", "Begin"]


def commits(place: Place) -> list[str]:
    log = ["git", "log", "--format=%s", "work"]
    return subprocess.check_output(log, cwd=place.repo, text=True).split()


def test_its_shell_can_use_the_store_of_fleet_and_not_the_work_of_others(place, elsewhere):
    others = elsewhere / "worktrees" / "other"
    others.mkdir(parents=True)
    fleet = Path(sys.executable).with_name("fleet")
    script = [
        run(f"{fleet} add 'From within' --json; touch {others}/x"),
        say("Added."),
    ]
    drive = place.drive(script, env={"FLEET_HOME": str(elsewhere)})
    assert drive.run().ending is Ending.SUCCEEDED
    listed = subprocess.check_output(
        [fleet, "tasks", "--json"], env={"FLEET_HOME": str(elsewhere)}, cwd=place.repo, text=True
    )
    assert "From within" in listed, place.asked[1].results
    assert list(others.iterdir()) == []


def test_full_permissions_are_full(place, elsewhere):
    outside = elsewhere / "made"
    script = [run(f"touch {outside}"), say("Done.")]
    assert place.drive(script, permissions="full").run().ending is Ending.SUCCEEDED
    assert outside.exists()


def test_sigterm_ends_it_and_what_it_ran(place):
    drive = place.drive([run("sleep 4321")])
    drive.start().until_said(SaidKind.TOOL)
    drive.stop(10).over()
    assert drive.heard.turns > drive.heard.ended_turns
    assert not left_of(drive)


def test_sigkill_loses_nothing_that_was_said_and_the_session_goes_on(place):
    script = [run("sleep 0.3; ls"), hang(), say("It was 7.")]
    drive = place.drive(script, prompt="Remember 7.")
    drive.start().until_said(SaidKind.USAGE).until(lambda: len(place.asked) == 2)
    os.killpg(pid_of(drive), signal.SIGKILL)
    outcome = drive.over()
    assert outcome.ending is Ending.FAILED
    assert outcome.exit_code == -signal.SIGKILL
    assert not left_of(drive)
    later = place.again(drive, prompt="What was it?")
    assert later.run().detail == "It was 7."
    assert "Remember 7." in place.asked[-1].said


def pid_of(drive) -> int:
    """The group that the keeper made for it."""
    return next(p for p in left_of(drive) if os.getpgid(p) == p and os.getsid(p) != p)


def test_it_ends_in_the_middle_of_a_turn_when_its_input_does_which_is_no_success(place):
    drive = place.drive([hang()])
    drive.start().until(lambda: place.asked)
    drive.keepers.close(drive.brief.run_id)
    drive.until(lambda: not left_of(drive), why="it ended")
    assert drive.heard.turns > drive.heard.ended_turns


def test_a_prompt_of_100_kb_arrives_byte_for_byte(place):
    seeded = random.Random(7)
    odd = "aZ0 \t\n\r\"'\\`$!{}<>&|;é—字𝄞\u2028\x7f\u200b"
    prompt = "/Begin" + "".join(seeded.choices(odd, k=80_000)) + "end  \n\n"
    assert len(prompt.encode()) > 100_000
    place.drive([say("Read.")], prompt=prompt).run()
    assert prompt in place.asked[0].said
