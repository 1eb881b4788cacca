"""In its terminal, too, a program has our tools without a dialog, and mail is put to it, once."""

from __future__ import annotations

import pytest

from fleet.testing.model_server import Reply, Say, say
from tests.real.terminal_scratch import TerminalScratch
from tests.real.terminal_world import asking
from tests.real.test_mcp_runs import tool

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
MAIL = "[Mail from me]\nLunch is ready."


@pytest.mark.parametrize("coder", ["claude", "codex", "opencode"])
def test_an_agent_in_a_terminal_calls_a_tool_and_hears_its_mail(coder, tmp_path):
    script = [tool(coder, "note", text="Half way."), say("Noted."), say("I come.")]
    with TerminalScratch(coder, tmp_path, script) as scratch:
        scratch("create", "seat", "--agent", "greeter", "--prompt", "Write a note.")
        scratch.until_doing("waiting")
        notes = [m for m in scratch.data("show", "t-1")["messages"] if m["kind"] == "note"]
        assert [(m["author"], m["text"]) for m in notes] == [("t-1.1", "Half way.")], (
            scratch.shown()
        )
        scratch.start()
        scratch("mail", "send", "seat", "Lunch is ready.")
        scratch.server.until(lambda asked: MAIL in asked.said)
        scratch.until(lambda: scratch.data("mail", "list", "seat")[0]["read_at"], why="it is read")
        scratch.until_doing("waiting")
        assert sum(words == MAIL for words in scratch.server.turns[-1].said) == 1


def test_nothing_is_typed_into_a_dialog(tmp_path):
    outside = tmp_path / "outside"
    script = [asking("claude", outside), Reply((Say("Made."),)), say("I come.")]
    with TerminalScratch("claude", tmp_path, script) as scratch:
        scratch("create", "seat", "--agent", "greeter", "--prompt", "Make it.")
        scratch.until_doing("permission")
        scratch.start()
        scratch("mail", "send", "seat", "Lunch is ready.")
        scratch.until(lambda: "Supervising" in (scratch.place / "supervisor.log").read_text())
        assert scratch.until_doing("permission")
        assert scratch.data("mail", "list", "seat")[0]["read_at"] is None
        assert not outside.exists()
        scratch.answer("1")
        scratch.server.until(lambda asked: MAIL in asked.said)
        assert outside.exists()
