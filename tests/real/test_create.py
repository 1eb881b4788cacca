"""The real programs in their terminals, by the commands that a person types, from start to end."""

from __future__ import annotations

import pytest
from create_desk import CreateDesk
from terminal_world import STOP, YES, asking

from fleet.testing.model_server import Reply, Say, Wait, fail, say

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

FIRST = "-One\n\ttwo \"three\" $(four) `five` 'é字' !six \\"
LATER = "-And\n\tthen? \"x\"\t$(touch x) `y` 'z' C-c 🚀 #{pid} \\"
LEAVE = {"claude": "/exit", "codex": "/quit", "opencode": "/exit"}


def slowly(program, path):
    """To make a file, and to rest before the tool has ended, where it is a command."""
    return asking(program, path if program == "opencode" else f"{path} && sleep 4")


@pytest.fixture(params=["claude", "codex", "opencode"])
def desk(request, tmp_path):
    script = [
        say("Hello."),
        slowly(request.param, tmp_path / "outside"),
        Reply((Say("I shall"), Wait(60))),
    ]
    with CreateDesk(request.param, tmp_path, script) as made:
        yield made


def test_an_agent_is_driven_by_commands_from_its_start_to_its_end(desk):
    outside = desk.place / "outside"
    assert desk("create", "seat", "--agent", "greeter", "--prompt", FIRST).startswith(
        "Created seat"
    )
    first = desk.server.until(lambda asked: not asked.aside and bool(asked.dialect))
    assert FIRST in first.said
    desk.until_doing("waiting")

    (desk.place / "later").write_text(LATER)
    heard = desk("prompt", "seat", "--file", str(desk.place / "later"))
    assert heard == "t-1 has heard it (m-1).\n"
    asks = desk.until_doing("permission")
    assert "wants" in asks["by"]
    assert LATER in desk.server.turns[1].said

    assert "asks for a permission" in desk.refused("prompt", "seat", "y")
    assert desk.agent()["doing"] == "permission"
    assert not outside.exists()
    assert len(desk.server.turns) == 2

    desk.answer(YES[desk.coder])
    desk.until_doing("working")
    assert desk.coder == "opencode" or len(desk.server.turns) == 2  # its tool still runs
    desk.until(lambda: len(desk.server.turns) == 3, timeout=20, why="it goes on")
    assert outside.exists()
    assert "is busy" in desk.refused("prompt", "seat", "More.")
    desk.interrupt(STOP[desk.coder])
    desk.until_doing("waiting")

    desk.terminals.paste("t-1.1", LEAVE[desk.coder])
    ended = desk.until_doing("exited")
    assert "status 0" in ended["by"]
    asked = len(desk.server.turns)
    assert "has exited" in desk.refused("prompt", "seat", "touch ../typed")
    assert "[heard] -One" in desk("logs", "seat")
    assert "Hello." in desk("logs", "seat")
    desk("list", "--repair")
    assert "has exited" in desk.refused("prompt", "seat", "touch ../typed")
    assert len(desk.server.turns) == asked


def test_a_turn_of_codex_that_failed_is_over_by_its_screen(tmp_path):
    """No hook of it tells so."""
    with CreateDesk("codex", tmp_path, [fail(400, "No."), say("Now it does.")]) as desk:
        desk("create", "seat", "--agent", "greeter", "--prompt", "Try.")
        assert "codex.empty-box" in desk.until_doing("waiting")["by"]
        assert desk("prompt", "seat", "Once more.") == "t-1 has heard it (m-1).\n"
        desk.server.until(lambda asked: "Once more." in asked.said)
        desk.until_doing("waiting")


@pytest.mark.parametrize("program", ["claude", "codex", "opencode"])
def test_words_that_are_sent_while_it_starts_come_after_its_first_prompt(program, tmp_path):
    with CreateDesk(program, tmp_path, [say("Hello."), say("Later.")]) as desk:
        run = tmp_path / "fleet" / "runs" / "t-1.1"
        with desk.typing(
            "create", "seat", "--agent", "greeter", "--prompt", "At first."
        ) as created:
            desk.until((run / "keeper.json").exists, timeout=30, why="its keeper")
            said = desk("prompt", "seat", "And then.", "--queue", "--wait", "60")
            assert said == "t-1 has heard it (m-1).\n"
            assert "And then." in (run / "transcript").read_text()
            assert created.wait(60) == 0
        desk.server.until(lambda asked: "And then." in asked.said)
        first, later = (turn.said for turn in desk.server.turns[:2])
        assert "At first." in first
        assert "And then." not in first
        assert "And then." in later
