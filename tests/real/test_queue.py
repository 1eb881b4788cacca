"""The real programs, unmodified, take tasks from the queue, by the commands that a person types."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from fleet.testing.model_server import Reply, Say, Tokens, fail, hang, say
from tests.real.model_scratch import COMMIT, CONTEXT, ModelScratch, shell

pytestmark = pytest.mark.real

NATIVE = ["claude", "codex", "opencode"]
GREET = f"sed -i s/world/fleet/ hello.txt && {COMMIT}"


@pytest.fixture(params=NATIVE)
def coder(request):
    return request.param


@pytest.mark.parametrize("coder", [*NATIVE, "acp"])
def test_a_task_is_done_in_its_own_worktree_with_the_agents_model(coder, tmp_path):
    script = [shell(coder, GREET), say("It greets the fleet.")]
    with ModelScratch(coder, tmp_path, script) as scratch:
        scratch.add("Greet the fleet")
        scratch("run", "--once")
        assert scratch.status() == "done", scratch.story()
        assert "It greets the fleet." in scratch("logs", "t-1")
        own = "scripted-model" if coder == "acp" else "fleet-greeter"
        assert {asked.model for asked in scratch.server.turns} == {own}
        assert scratch.greeting() == "Hello, fleet.\n"
        assert (scratch.repo / "hello.txt").read_text() == "Hello, world.\n"
        told = "\n".join([scratch.server.turns[0].system, *scratch.server.turns[0].said])
        assert "PLAN_AND_STATUS.md" in told


def test_it_asks_is_answered_and_goes_on_in_the_same_conversation(coder, tmp_path):
    script = [
        shell(coder, "fleet ask 'Whom shall I greet?' --option Moon --option Sun --park"),
        say("I wait for the answer."),
        shell(coder, f"sed -i s/world/moon/ hello.txt && {COMMIT}"),
        say("It greets the moon."),
    ]
    with ModelScratch(coder, tmp_path, script) as scratch:
        scratch.add("Greet someone")
        scratch("run", "--once")
        assert "Whom shall I greet?" in scratch("questions")
        scratch("answer", "t-1", "1")
        scratch("run", "--once")
        assert (scratch.status(), scratch.endings()) == ("done", ["asked", "succeeded"]), (
            scratch.story()
        )
        assert scratch.greeting() == "Hello, moon.\n"
        assert scratch.conversations() == 1
        assert any("Moon" in words for words in scratch.server.turns[-1].said)


def test_it_parks_and_closes_by_the_commands_of_bd(coder, tmp_path):
    asks = 'printf "\\n## Q: Whom?\\n" >> "$FLEET_ARTIFACT_DIR/Q&A.md" && '
    asks += 'bd update $FLEET_TASK_ID --status blocked --notes "QUESTION: Whom?"'
    script = [
        shell(coder, asks),
        say("I wait."),
        shell(coder, 'bd close $FLEET_TASK_ID --reason "All is well."'),
        say("Done."),
    ]
    with ModelScratch(coder, tmp_path, script) as scratch:
        scratch.add("Greet someone")
        scratch("run", "--once")
        assert scratch.endings() == ["asked"], scratch.story()
        file = tmp_path / "fleet" / "tasks" / "t-1" / "artifacts" / "Q&A.md"
        file.write_text(file.read_text() + "\n## A: 2026-01-02 03:04\n\nThe stars.\n")
        scratch("bd", "update", "t-1", "--status", "open", "--assignee", "")
        scratch("run", "--once")
        assert scratch.endings() == ["asked", "succeeded"], scratch.story()
        assert scratch.runs()[-1]["detail"] == "All is well."
        assert any("The stars." in words for words in scratch.server.turns[-1].said)


def test_words_reach_it_in_the_middle_of_its_turn(coder, tmp_path):
    script = [shell(coder, "sleep 4; ls"), say("Heard you."), say("And again.")]
    with ModelScratch(coder, tmp_path, script) as scratch:
        scratch.add("Look around")
        scratch.start()
        scratch.server.until(lambda asked: not asked.aside and bool(asked.dialect))
        scratch.until(lambda: "sleep 4" in scratch("logs", "t-1"), why="its tool runs")
        assert (
            scratch("send", "t-1", "Mind the gap.", "--wait", "30")
            == "t-1 has read the message (m-1).\n"
        )
        scratch.wait("done")
        assert scratch.conversations() == 1
        said = scratch.server.turns[-1].said
        assert sum("Mind the gap." in words for words in said) == 1
        assert scratch.endings() == ["succeeded"]


def test_a_429_postpones_it_and_costs_no_attempt(coder, tmp_path):
    """Codex and Claude Code first try again by themselves, after as long as they are told."""
    turned_away = fail(429, "Slow down.", retry_after=3600 if coder == "opencode" else 1)
    state = {"away": True}

    def script(asked):
        return turned_away if state["away"] else say("At last.")

    with ModelScratch(coder, tmp_path, script) as scratch:
        scratch.add("Be patient", "--attempts", "1")
        scratch.start()
        scratch.wait("postponed", "failed")
        assert scratch.endings() == ["rate_limited"], scratch.story()
        assert scratch.data("show", "t-1")["failures"] == 0
        state["away"] = False
        scratch("resume", "t-1")
        scratch.wait("done")
        assert scratch.endings() == ["rate_limited", "succeeded"]


def test_a_full_context_ends_the_run_and_a_fresh_conversation_goes_on(coder, tmp_path):
    def script(asked):
        """The first conversation is nearly full after its first step; the next one finishes."""
        if not any("filled its context" in words for words in asked.said):
            step = shell(coder, "sleep 3; echo step")
            return Reply(step.parts, Tokens(input=int(CONTEXT * 0.95)))
        return say("Done with less.")

    with ModelScratch(coder, tmp_path, script) as scratch:
        scratch.add("Fill it", "--attempts", "1")
        scratch.start()
        scratch.wait("done", "failed")
        assert scratch.endings() == ["context_full", "succeeded"], scratch.story()
        assert scratch.conversations() == 2


def test_killed_in_the_middle_the_next_run_goes_on_with_the_conversation(coder, tmp_path):
    state = {"hang": True}

    def script(asked):
        if asked.number == 0:
            return shell(coder, GREET)
        return hang() if state["hang"] else Reply((Say("Where was I? Done."),))

    with ModelScratch(coder, tmp_path, script) as scratch:
        scratch.add("Survive")
        scratch.start()
        scratch.server.until(lambda asked: asked.number == 1 and not asked.aside, timeout=40)
        scratch.kill_supervisor()
        scratch.start()
        pid = scratch.coder_pid("t-1.1")
        state["hang"] = False
        os.kill(pid, signal.SIGKILL)
        scratch.wait("done", "failed")
        assert scratch.endings() == ["failed", "succeeded"], scratch.story()
        assert scratch.conversations() == 1
        assert scratch.greeting() == "Hello, fleet.\n"


FILES_OF_CONVERSATIONS = {
    "claude": "home/.claude/projects",
    "codex": "home/.codex/sessions",
    "opencode": "home/.local/share/opencode",
}


def test_a_conversation_whose_files_are_gone_is_begun_anew_at_no_attempt(coder, tmp_path):
    asks = shell(coder, "fleet ask 'Whom shall I greet?' --option Moon --park")

    def script(asked):
        if any("Answer: Moon" in words for words in asked.said):
            return say("It greets the moon.")
        return say("I wait for the answer.") if asked.number else asks

    with ModelScratch(coder, tmp_path, script) as scratch:
        scratch.add("Greet someone", "--attempts", "1")
        scratch("run", "--once")
        files = tmp_path / FILES_OF_CONVERSATIONS[coder]
        assert files.is_dir(), list((tmp_path / "home").rglob("*"))[:50]
        shutil.rmtree(files)
        scratch("answer", "t-1", "1")
        scratch("run", "--once")
        assert scratch.status() == "done", scratch.story()
        assert scratch.endings() == ["asked", "lost", "succeeded"], scratch.story()
        assert scratch.conversations() == 2
