"""The real programs in their terminals, by the commands that a person types, from start to end."""

from __future__ import annotations

import pytest

from fleet.testing.model_server import Reply, Say, Wait, fail, say
from tests.real.terminal_scratch import TerminalScratch
from tests.real.terminal_world import STOP, YES, asking
from tests.wait import LIMIT

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

FIRST = "-One\n\ttwo \"three\" $(four) `five` 'é字' !six \\"
LATER = "-And\n\tthen? \"x\"\t$(touch x) `y` 'z' C-c 🚀 #{pid} \\"
LEAVE = {"claude": "/exit", "codex": "/quit", "opencode": "/exit"}


def slowly(program, path):
    """To make a file, and to rest before the tool has ended, where it is a command."""
    return asking(program, path if program == "opencode" else f"{path} && sleep 4")


@pytest.fixture(params=["claude", "codex", "opencode"])
def scratch(request, tmp_path):
    script = [
        say("Hello."),
        slowly(request.param, tmp_path / "outside"),
        Reply((Say("I shall"), Wait(60))),
    ]
    with TerminalScratch(request.param, tmp_path, script) as made:
        yield made


def test_an_agent_is_driven_by_commands_from_its_start_to_its_end(scratch):
    outside = scratch.place / "outside"
    assert scratch("create", "seat", "--agent", "greeter", "--prompt", FIRST).startswith(
        "Created seat"
    )
    first = scratch.server.until(lambda asked: not asked.aside and bool(asked.dialect))
    assert FIRST in first.said
    scratch.until_doing("waiting")

    (scratch.place / "later").write_text(LATER)
    heard = scratch("prompt", "seat", "--file", str(scratch.place / "later"))
    assert heard == "t-1 has read the message (m-1).\n"
    asks = scratch.until_doing("permission")
    assert "wants" in asks["by"]
    assert LATER in scratch.server.turns[1].said

    assert "asks for a permission" in scratch.refused("prompt", "seat", "y")
    assert scratch.agent()["doing"] == "permission"
    assert not outside.exists()
    assert len(scratch.server.turns) == 2

    scratch.answer(YES[scratch.coder])
    scratch.until_doing("working")
    assert scratch.coder == "opencode" or len(scratch.server.turns) == 2  # its tool still runs
    scratch.until(lambda: len(scratch.server.turns) == 3, why="it goes on")
    assert outside.exists()
    assert "is busy" in scratch.refused("prompt", "seat", "More.")
    scratch.interrupt(STOP[scratch.coder])
    scratch.until_doing("waiting")

    scratch.terminals.paste("t-1.1", LEAVE[scratch.coder])
    ended = scratch.until_doing("exited")
    assert "status 0" in ended["by"]
    asked = len(scratch.server.turns)
    assert "has exited" in scratch.refused("prompt", "seat", "touch ../typed")
    assert "[heard] -One" in scratch("logs", "seat")
    assert "Hello." in scratch("logs", "seat")
    scratch("list", "--repair")
    assert "has exited" in scratch.refused("prompt", "seat", "touch ../typed")
    assert len(scratch.server.turns) == asked


def test_a_turn_of_codex_that_failed_is_over_by_its_screen(tmp_path):
    """No hook of it tells so."""
    with TerminalScratch("codex", tmp_path, [fail(400, "No."), say("Now it does.")]) as scratch:
        scratch("create", "seat", "--agent", "greeter", "--prompt", "Try.")
        assert "codex.empty-box" in scratch.until_doing("waiting")["by"]
        assert scratch("prompt", "seat", "Once more.") == "t-1 has read the message (m-1).\n"
        scratch.server.until(lambda asked: "Once more." in asked.said)
        scratch.until_doing("waiting")


@pytest.mark.parametrize("program", ["claude", "codex", "opencode"])
def test_words_that_are_sent_while_it_starts_come_after_its_first_prompt(program, tmp_path):
    with TerminalScratch(program, tmp_path, [say("Hello."), say("Later.")]) as scratch:
        run = tmp_path / "fleet" / "runs" / "t-1.1"
        with scratch.typing(
            "create", "seat", "--agent", "greeter", "--prompt", "At first."
        ) as created:
            scratch.until((run / "keeper.json").exists, why="its keeper")
            said = scratch("prompt", "seat", "And then.", "--queue", "--wait", f"{LIMIT:.0f}")
            assert said == "t-1 has read the message (m-1).\n"
            assert "And then." in (run / "transcript").read_text()
            assert created.wait(LIMIT) == 0
        scratch.server.until(lambda asked: "And then." in asked.said)
        first, later = (turn.said for turn in scratch.server.turns[:2])
        assert "At first." in first
        assert "And then." not in first
        assert "And then." in later


@pytest.fixture
def claude(tmp_path):
    with TerminalScratch("claude", tmp_path, lambda _asked: say("Hello.")) as made:
        yield made


def test_commands_of_claude_code_are_delivered_and_block_no_later_prompt(claude):
    scratch = claude
    scratch("create", "seat", "--agent", "greeter", "--prompt", "Hi.")
    scratch.until_doing("waiting")
    for number, command in enumerate(("/clear", "/compact", "/nosuch"), 1):
        heard = scratch("prompt", "seat", command)
        assert heard == f"t-1 has read the message (m-{number}).\n"
    assert "has read the message" in scratch("prompt", "seat", "/help")
    scratch.until_doing("panel")
    assert "Close it with Esc" in scratch.refused("prompt", "seat", "More.")
    scratch.terminals.press("t-1.1", "Escape")
    scratch.until(lambda: scratch.agent()["doing"] != "panel", why="the panel is closed")
    assert "has read the message" in scratch("prompt", "seat", "And after that.")
