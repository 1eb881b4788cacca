"""Claude Code itself, unmodified, under a keeper, against a scripted model."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from fleet.adapters.coders.claude.coder import ClaudeCoder
from fleet.adapters.processes.keepers import Keepers
from fleet.base import machine
from fleet.domain.run import Ending
from fleet.domain.transcript import SaidKind
from fleet.ports import Brief
from fleet.testing.model_server import (
    Asked,
    Call,
    ModelServer,
    Reply,
    Say,
    Tokens,
    Wait,
    call,
    fail,
    hang,
    limited,
    say,
)  # fmt: skip
from tests.real.programs import UNTIL_GO_ON, Drive, private_env, repository
from tests.wait import until

pytestmark = pytest.mark.real

RESET = 1_900_000_000


class World:
    """A repository, a home, a model; `drive` makes runs in it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.cwd = repository(place / "repo")
        self.keepers = Keepers(place / "runs")
        self.servers: list[ModelServer] = []
        self.drives: list[Drive] = []

    def drive(self, script, *, prompt: str = "Go.", env=None, **options) -> Drive:
        server = ModelServer(script)
        self.servers.append(server.__enter__())
        gateway = {"base_url": server.url, "key_env": "THE_KEY"}
        brief = Brief(
            run_id=f"t-1.{len(self.servers)}",
            prompt=prompt,
            cwd=str(self.cwd),
            task_dir=str(self.place / "task"),
            model="scripted",
            instructions="You are the test's own agent.",
            env=private_env(self.place / "home", THE_KEY="sk-scripted", **(env or {})),
            options={"gateway": gateway, **options},
        )
        self.drives.append(Drive(ClaudeCoder(), self.keepers, brief))
        return self.drives[-1]

    @property
    def asked(self) -> list[Asked]:
        return self.servers[-1].turns

    def close(self) -> None:
        for drive in self.drives:
            self.keepers.end(drive.brief.run_id)
        for server in self.servers:
            server.__exit__()


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def pid_of(drive: Drive) -> int:
    """Claude Code's own: it carries its run's mark, and is the program."""
    mark = machine.marked(_mark(drive))
    return next(p for p in mark if "claude" in Path(f"/proc/{p}/exe").resolve().name)


def _mark(drive: Drive) -> str:
    folder = drive.keepers.folder(drive.brief.run_id)
    return str(json.loads((folder / "keeper.json").read_text())["mark"])


def test_it_edits_a_file_where_it_works_and_ends(world):
    file = world.cwd / "hello.txt"
    run = world.drive([
        call("Read", file_path=str(file)),
        call("Edit", file_path=str(file), old_string="world", new_string="fleet"),
        Reply((Say("It greets the fleet."),), Tokens(input=100, output=7, cached=2000, written=50)),
    ])  # fmt: skip
    outcome = run.run()
    assert (outcome.ending, outcome.exit_code) == (Ending.SUCCEEDED, 0)
    assert outcome.detail == "It greets the fleet."
    assert file.read_text() == "Hello, fleet.\n"
    assert outcome.checkpoint.session
    assert outcome.usage.context == 2150
    assert outcome.usage.cached == 2000
    assert outcome.usage.output == 27
    assert outcome.usage.usd == 0  # nobody knows what a scripted model costs
    first = world.asked[0]
    assert "You are the test's own agent." in first.system
    assert first.headers["authorization"] == "Bearer sk-scripted"
    assert first.model == "scripted"


def test_it_runs_commands_and_commits(world):
    run = world.drive([
        call("Bash", command="echo new > new.txt && git add -A && "
             "git -c user.name=A -c user.email=a@example.invalid commit -qm Work"),
        say("Committed."),
    ])  # fmt: skip
    assert run.run().ending is Ending.SUCCEEDED
    log = subprocess.run(
        ["git", "log", "--format=%s"], check=True, cwd=world.cwd, capture_output=True, text=True
    )
    assert log.stdout.split() == ["Work", "Begin"]


def test_words_sent_in_the_middle_of_a_turn_enter_that_turn(world):
    run = world.drive([call("Bash", command=UNTIL_GO_ON), say("As you wish.")])
    run.start().until_said(SaidKind.TOOL).say("Mind the gap.").say("And the step.").go_on()
    run.until_turn_ends()
    assert run.heard.heard_words == 2
    assert run.end().ending is Ending.SUCCEEDED
    assert run.heard.turns == run.heard.ended_turns == 1
    second = "\n".join(world.asked[1].said)
    assert "Mind the gap." in second
    assert "And the step." in second
    assert len({asked.conversation for asked in world.asked}) == 1


def test_words_sent_while_the_model_speaks_become_the_next_turn_though_input_is_closed(world):
    run = world.drive([Reply((Say("Half"), Wait(1), Say(" and whole."))), say("Heard.")])
    run.start().until_said(SaidKind.TEXT, "Half").say("One more thing.")
    outcome = run.end()
    assert run.heard.heard_words == 1
    assert run.heard.ended_turns == 2
    assert outcome.detail == "Heard."
    assert world.asked[1].said[-1] == "One more thing."


def test_a_later_run_goes_on_with_the_same_conversation_and_counts_only_itself(world):
    first = world.drive([say("I shall remember 7."), say("It was 7.")], prompt="Remember 7.")
    session = first.run().checkpoint.session
    later = first.again("t-1.9", session=session, prompt="What was it?")
    world.drives.append(later)
    outcome = later.run()
    assert outcome.detail == "It was 7."
    assert outcome.checkpoint.session == session
    assert "Remember 7." in world.asked[1].said
    assert "What was it?" in world.asked[1].said
    assert outcome.usage.usd == pytest.approx(first.heard.usage.usd)


def test_a_session_that_is_not_there_is_a_failure_that_names_it(world):
    run = world.drive([]).again("t-1.9", session="00000000-0000-4000-8000-000000000000")
    world.drives.append(run)
    outcome = run.run()
    assert outcome.ending is Ending.FAILED
    assert "No conversation found" in outcome.detail
    assert outcome.checkpoint.session == ""


def test_a_429_that_it_retries_by_itself_costs_nothing(world):
    run = world.drive([fail(429, "Slow down.", retry_after=0), say("At last.")])
    outcome = run.run()
    assert outcome.ending is Ending.SUCCEEDED
    assert not any(said.kind is SaidKind.LIMIT for said in run.said)


def test_a_429_at_the_end_is_a_rate_limit_and_no_failure(world):
    few = {"CLAUDE_CODE_MAX_RETRIES": "1"}
    run = world.drive([fail(429, "Slow down.", retry_after=0)] * 9, env=few)
    outcome = run.run()
    assert outcome.ending is Ending.RATE_LIMITED
    assert "Slow down." in outcome.detail


def test_a_subscription_that_is_used_up_says_when_it_comes_back(world):
    run = world.drive([limited(RESET)] * 9, env={"CLAUDE_CODE_MAX_RETRIES": "1"})
    options = {"gateway": None}
    login = {
        **{k: v for k, v in run.brief.env.items() if k != "THE_KEY"},
        "ANTHROPIC_BASE_URL": world.servers[-1].url,
        "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted",
    }
    run = run.again("t-1.9", env=login, options=options)
    world.drives.append(run)
    outcome = run.run()
    assert outcome.ending is Ending.RATE_LIMITED
    assert outcome.resume_at == RESET * 1_000_000


def test_a_wrong_key_is_a_failure_that_says_so(world):
    run = world.drive([fail(401, "Bad key.")] * 9, env={"CLAUDE_CODE_MAX_RETRIES": "1"})
    outcome = run.run()
    assert outcome.ending is Ending.FAILED
    assert outcome.exit_code == 1
    assert "Bad key." in outcome.detail


def test_an_agent_that_reads_cannot_write(world):
    (world.place / "task" / "artifacts").mkdir(parents=True)
    run = world.drive(
        [
            call("Write", file_path=str(world.cwd / "new.txt"), content="x"),
            call("Bash", command="echo x > new.txt"),
            call("Bash", command="touch new.txt"),
            call("Bash", command="cat hello.txt"),
            say("I only read."),
        ],
        permissions="read",
    )
    assert run.run().ending is Ending.SUCCEEDED
    assert sorted(p.name for p in world.cwd.iterdir()) == [".git", "hello.txt"]
    results = [said for said in run.said if said.kind is SaidKind.TOOL_RESULT]
    assert [said.failed for said in results] == [True, True, True, False]
    assert results[-1].text == "Hello, world."


def test_an_agent_that_edits_does_so_in_its_worktree_and_its_artifacts_and_not_outside(world):
    notes, outside = world.place / "task" / "artifacts", world.place / "outside"
    notes.mkdir(parents=True)
    outside.mkdir()
    run = world.drive([
        call("Write", file_path=str(world.cwd / "in.txt"), content="x"),
        call("Bash", command="python3 -c 'open(\"made.txt\", \"w\")'"),
        call("Write", file_path=str(notes / "PLAN.md"), content="x"),
        call("Write", file_path=str(outside / "a"), content="x"),
        call("Bash", command=f"echo x > {outside}/b"),
        call("Bash", command=f"cp hello.txt {outside}/c"),
        call("Bash", command=f"cd {outside} && touch d"),
        call("EnterWorktree", name="elsewhere"),
        say("So it is."),
    ])  # fmt: skip
    assert run.run().ending is Ending.SUCCEEDED
    failed = [said.failed for said in run.said if said.kind is SaidKind.TOOL_RESULT]
    assert failed == [False] * 3 + [True] * 5
    assert (world.cwd / "in.txt").exists()
    assert (world.cwd / "made.txt").exists()
    assert (notes / "PLAN.md").exists()
    assert list(outside.iterdir()) == []


def test_full_permissions_are_full(world):
    outside = world.place / "outside"
    run = world.drive(
        [call("Write", file_path=str(outside), content="x"), say("Done.")],
        permissions="full",
        env={"IS_SANDBOX": "1"},  # it refuses root otherwise
    )
    assert run.run().ending is Ending.SUCCEEDED
    assert outside.read_text() == "x"


def test_only_the_tools_that_its_agent_names_are_granted(world):
    world.drive([say("Fine.")], tools=("Read", "Grep", "Glob")).run()
    assert set(world.asked[0].tools) - {"DeferredToolPlaceholder"} == {"Read", "Grep", "Glob"}


def test_no_tool_leads_out_of_the_run(world):
    world.drive([say("Fine.")]).run()
    leaving = {"EnterWorktree", "ListAgents", "SendMessage", "ScheduleWakeup", "CronCreate"}
    assert {"Bash", "Edit", "Read", "Write"} <= set(world.asked[0].tools)
    assert not leaving & set(world.asked[0].tools)


def helped(asked: Asked) -> Reply:
    """It sends an agent, which takes a second, and goes by what that one found."""
    if "/" in asked.conversation:
        return Reply((Wait(1), Say("Two files.")), Tokens(input=9000))
    look = call("Agent", description="Count", prompt="Count.", subagent_type="Explore")
    return [look, say("Sent someone."), say("There are two.")][asked.number]


def test_an_agent_that_it_starts_ends_within_the_turn_and_is_counted(world):
    run = world.drive(helped)
    outcome = run.run()
    assert run.heard.turns == run.heard.ended_turns == 1
    assert any("Two files." in result for result in world.asked[-1].results)
    assert outcome.usage.input >= 9000
    assert run.heard.peak_context < 9000


def test_where_background_work_is_allowed_a_run_goes_on_until_its_agents_have_ended(world):
    run = world.drive(helped, env={"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "0"})
    run.start().until_turn_ends()
    assert run.heard.turns > run.heard.ended_turns
    outcome = run.end()
    assert outcome.detail == "There are two."
    assert run.heard.turns == run.heard.ended_turns == 2


def test_nothing_is_left_in_the_background_to_keep_it_from_exiting(world):
    run = world.drive([call("Bash", command="ls", run_in_background=True), say("Done.")])
    run.start().until_turn_ends()
    assert run.end().ending is Ending.SUCCEEDED
    bash = next(t for t in world.asked[0].body["tools"] if t["name"] == "Bash")
    assert "run_in_background" not in bash["input_schema"]["properties"]
    assert "max 3600000" in json.dumps(bash)


def test_sigterm_ends_it_and_what_it_ran(world):
    run = world.drive([Reply((Say("Wait."), Call("Bash", {"command": "sleep 4321"})))])
    run.start().until_said(SaidKind.TOOL)
    outcome = run.stop(10).over()
    assert outcome.ending is Ending.FAILED
    assert outcome.exit_code in {143, -signal.SIGTERM}
    assert outcome.checkpoint.session
    assert not machine.marked(_mark(run))


def conversations(world) -> str:
    """What Claude Code has saved of them. It writes a moment after it speaks."""
    files = (world.place / "home" / ".claude" / "projects").rglob("*.jsonl")
    return "".join(file.read_text() for file in files)


def test_sigkill_loses_nothing_that_was_said_and_the_session_goes_on(world):
    run = world.drive([call("Bash", command="ls"), hang()], prompt="Remember 7.")
    run.start().until_said(SaidKind.TOOL_RESULT)
    until(lambda: "tool_result" in conversations(world), "that it has saved the conversation")
    os.kill(pid_of(run), signal.SIGKILL)
    outcome = run.over()
    assert outcome.ending is Ending.FAILED
    assert outcome.exit_code == -signal.SIGKILL
    assert run.heard.usage.context == 100
    world.drive([say("It was 7.")])
    later = world.drives[-1].again(
        "t-1.9", session=outcome.checkpoint.session, prompt="What was it?"
    )
    world.drives.append(later)
    assert later.run().detail == "It was 7."
    assert "Remember 7." in world.asked[0].said


def test_a_prompt_of_100_kb_arrives_byte_for_byte(world):
    seeded = random.Random(7)
    odd = "aZ0 \t\n\r\"'\\`$!{}<>&|;é—字𝄞\u2028\x7f\u200b"
    prompt = "Begin" + "".join(seeded.choices(odd, k=80_000)) + "end  \n\n"
    assert len(prompt.encode()) > 100_000
    world.drive([say("Read.")], prompt=prompt).run()
    assert prompt in world.asked[0].said
