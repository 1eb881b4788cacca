"""The real programs, unmodified, take tasks from the queue, by the commands that a person types."""

from __future__ import annotations

import os
import signal

import pytest
from queue_desk import COMMIT, CONTEXT, QueueDesk, shell

from fleet.testing.model_server import Reply, Say, Tokens, fail, hang, say

pytestmark = pytest.mark.real

NATIVE = ["claude", "codex", "opencode"]
GREET = f"sed -i s/world/fleet/ hello.txt && {COMMIT}"


@pytest.fixture(params=NATIVE)
def coder(request):
    return request.param


@pytest.mark.parametrize("coder", [*NATIVE, "acp"])
def test_a_task_is_done_in_its_own_worktree_with_the_agents_model(coder, tmp_path):
    script = [shell(coder, GREET), say("It greets the fleet.")]
    with QueueDesk(coder, tmp_path, script) as desk:
        desk.add("Greet the fleet")
        desk("run", "--once")
        assert desk.status() == "done", desk.story()
        assert "It greets the fleet." in desk("logs", "t-1")
        own = "scripted-model" if coder == "acp" else "fleet-greeter"
        assert {asked.model for asked in desk.server.turns} == {own}
        assert desk.greeting() == "Hello, fleet.\n"
        assert (desk.repo / "hello.txt").read_text() == "Hello, world.\n"
        told = "\n".join([desk.server.turns[0].system, *desk.server.turns[0].said])
        assert "PLAN_AND_STATUS.md" in told


def test_it_asks_is_answered_and_goes_on_in_the_same_conversation(coder, tmp_path):
    script = [
        shell(coder, "fleet ask 'Whom shall I greet?' --option Moon --option Sun --park"),
        say("I wait for the answer."),
        shell(coder, f"sed -i s/world/moon/ hello.txt && {COMMIT}"),
        say("It greets the moon."),
    ]
    with QueueDesk(coder, tmp_path, script) as desk:
        desk.add("Greet someone")
        desk("run", "--once")
        assert "Whom shall I greet?" in desk("questions")
        desk("answer", "t-1", "1")
        desk("run", "--once")
        assert (desk.status(), desk.endings()) == ("done", ["asked", "succeeded"]), desk.story()
        assert desk.greeting() == "Hello, moon.\n"
        assert desk.conversations() == 1
        assert any("Moon" in words for words in desk.server.turns[-1].said)


def test_it_parks_and_closes_by_the_commands_of_bd(coder, tmp_path):
    asks = 'printf "\\n## Q: Whom?\\n" >> "$FLEET_ARTIFACT_DIR/Q&A.md" && '
    asks += 'bd update $FLEET_TASK_ID --status blocked --notes "QUESTION: Whom?"'
    script = [
        shell(coder, asks),
        say("I wait."),
        shell(coder, 'bd close $FLEET_TASK_ID --reason "All is well."'),
        say("Done."),
    ]
    with QueueDesk(coder, tmp_path, script) as desk:
        desk.add("Greet someone")
        desk("run", "--once")
        assert desk.endings() == ["asked"], desk.story()
        file = tmp_path / "fleet" / "tasks" / "t-1" / "artifacts" / "Q&A.md"
        file.write_text(file.read_text() + "\n## A: 2026-01-02 03:04\n\nThe stars.\n")
        desk("bd", "update", "t-1", "--status", "open", "--assignee", "")
        desk("run", "--once")
        assert desk.endings() == ["asked", "succeeded"], desk.story()
        assert desk.runs()[-1]["detail"] == "All is well."
        assert any("The stars." in words for words in desk.server.turns[-1].said)


def test_words_reach_it_in_the_middle_of_its_turn(coder, tmp_path):
    script = [shell(coder, "sleep 4; ls"), say("Heard you."), say("And again.")]
    with QueueDesk(coder, tmp_path, script) as desk:
        desk.add("Look around")
        desk.start()
        desk.server.until(lambda asked: not asked.aside and bool(asked.dialect))
        desk.until(lambda: "sleep 4" in desk("logs", "t-1"), why="its tool runs")
        assert desk("send", "t-1", "Mind the gap.", "--wait", "30") == "t-1 has heard it (m-1).\n"
        desk.wait("done")
        assert desk.conversations() == 1
        said = desk.server.turns[-1].said
        assert sum("Mind the gap." in words for words in said) == 1
        assert desk.endings() == ["succeeded"]


def test_a_429_postpones_it_and_costs_no_attempt(coder, tmp_path):
    """Codex and Claude Code first try again by themselves, after as long as they are told."""
    turned_away = fail(429, "Slow down.", retry_after=3600 if coder == "opencode" else 1)
    state = {"away": True}

    def script(asked):
        return turned_away if state["away"] else say("At last.")

    with QueueDesk(coder, tmp_path, script) as desk:
        desk.add("Be patient", "--attempts", "1")
        desk.start()
        desk.wait("postponed", "failed")
        assert desk.endings() == ["rate_limited"], desk.story()
        assert desk.data("show", "t-1")["failures"] == 0
        state["away"] = False
        desk("resume", "t-1")
        desk.wait("done")
        assert desk.endings() == ["rate_limited", "succeeded"]


def test_a_full_context_ends_the_run_and_a_fresh_conversation_goes_on(coder, tmp_path):
    def script(asked):
        """The first conversation is nearly full after its first step; the next one finishes."""
        if not any("filled its context" in words for words in asked.said):
            step = shell(coder, "sleep 3; echo step")
            return Reply(step.parts, Tokens(input=int(CONTEXT * 0.95)))
        return say("Done with less.")

    with QueueDesk(coder, tmp_path, script) as desk:
        desk.add("Fill it", "--attempts", "1")
        desk.start()
        desk.wait("done", "failed")
        assert desk.endings() == ["context_full", "succeeded"], desk.story()
        assert desk.conversations() == 2


def test_killed_in_the_middle_the_next_run_goes_on_with_the_conversation(coder, tmp_path):
    state = {"hang": True}

    def script(asked):
        if asked.number == 0:
            return shell(coder, GREET)
        return hang() if state["hang"] else Reply((Say("Where was I? Done."),))

    with QueueDesk(coder, tmp_path, script) as desk:
        desk.add("Survive")
        desk.start()
        desk.server.until(lambda asked: asked.number == 1 and not asked.aside, timeout=40)
        desk.kill_supervisor()
        desk.start()
        pid = desk.coder_pid("t-1.1")
        state["hang"] = False
        os.kill(pid, signal.SIGKILL)
        desk.wait("done", "failed")
        assert desk.endings() == ["failed", "succeeded"], desk.story()
        assert desk.conversations() == 1
        assert desk.greeting() == "Hello, fleet.\n"
