"""In its terminal, too, a program has our tools without a dialog, and mail is put to it, once."""

from __future__ import annotations

import pytest
from create_desk import CreateDesk
from terminal_world import asking
from test_mcp_runs import tool

from fleet.testing.model_server import Reply, Say, say

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
MAIL = "[Mail from me]\nLunch is ready."


@pytest.mark.parametrize("coder", ["claude", "codex", "opencode"])
def test_an_agent_in_a_terminal_calls_a_tool_and_hears_its_mail(coder, tmp_path):
    script = [tool(coder, "note", text="Half way."), say("Noted."), say("I come.")]
    with CreateDesk(coder, tmp_path, script) as desk:
        desk("create", "seat", "--agent", "greeter", "--prompt", "Write a note.")
        desk.until_doing("waiting")
        notes = [m for m in desk.data("show", "t-1")["messages"] if m["kind"] == "note"]
        assert [(m["author"], m["text"]) for m in notes] == [("t-1.1", "Half way.")], desk.shown()
        desk.start()
        desk("mail", "send", "seat", "Lunch is ready.")
        desk.server.until(lambda asked: MAIL in asked.said)
        desk.until(lambda: desk.data("mail", "list", "seat")[0]["read_at"], why="it is read")
        desk.until_doing("waiting")
        assert sum(words == MAIL for words in desk.server.turns[-1].said) == 1


def test_nothing_is_typed_into_a_dialog(tmp_path):
    outside = tmp_path / "outside"
    script = [asking("claude", outside), Reply((Say("Made."),)), say("I come.")]
    with CreateDesk("claude", tmp_path, script) as desk:
        desk("create", "seat", "--agent", "greeter", "--prompt", "Make it.")
        desk.until_doing("permission")
        desk.start()
        desk("mail", "send", "seat", "Lunch is ready.")
        desk.until(lambda: "Supervising" in (desk.place / "supervisor.log").read_text())
        assert desk.until_doing("permission")
        assert desk.data("mail", "list", "seat")[0]["read_at"] is None
        assert not outside.exists()
        desk.answer("1")
        desk.server.until(lambda asked: MAIL in asked.said)
        assert outside.exists()
