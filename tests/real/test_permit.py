"""The permission dialogs of the real programs, answered from outside."""

from __future__ import annotations

import pytest

from fleet.testing.model_server import say
from tests.real.terminal_scratch import TerminalScratch
from tests.real.terminal_world import asking

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


@pytest.fixture(params=["claude", "codex", "opencode"])
def scratch(request, tmp_path):
    script = [
        asking(request.param, tmp_path / "outside"),
        say("Made."),
        asking(request.param, tmp_path / "second"),
        say("Made."),
    ]
    with TerminalScratch(request.param, tmp_path, script) as made:
        yield made


def test_it_is_allowed_from_now_on_where_its_dialog_offers_that(scratch):
    outside = scratch.place / "outside"
    scratch("create", "seat", "--agent", "greeter", "--prompt", "Go.")
    scratch.until_doing("permission")
    if scratch.coder == "opencode":
        assert "has no answer" in scratch.refused("approve", "seat", "--always")
        assert not outside.exists()
        return
    assert scratch("approve", "seat", "--always").startswith("Always allowed t-1: ")
    scratch.until(outside.exists, why="it was allowed")
    scratch.until_doing("waiting")


def test_what_it_asks_is_seen_and_answered_by_commands(scratch):
    outside, second = scratch.place / "outside", scratch.place / "second"
    scratch("create", "seat", "--agent", "greeter", "--prompt", "Go.")
    asks = scratch.until_doing("permission")
    assert scratch.coder == "opencode" or str(outside) in asks["asks"]
    answered = scratch("approve", "seat", "--asks", asks["asks"])
    assert answered.startswith("Allowed t-1: ")
    scratch.until(outside.exists, why="it was allowed")
    scratch.until_doing("waiting")
    assert "asks for no permission now" in scratch.refused("approve", "seat")

    scratch("prompt", "seat", "Again.")
    scratch.until_doing("permission")
    assert scratch("deny", "seat").startswith("Denied t-1: ")
    scratch.until_doing("waiting")
    assert not second.exists()
