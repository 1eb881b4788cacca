"""The real programs' own interfaces, in tmux: typed to, watched, interrupted, and left."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from fleet.domain.errors import Refused
from fleet.ports import Presence, ScreenState
from fleet.testing.model_server import ModelServer, after, say

sys.path.insert(0, str(Path(__file__).parents[1] / "transcripts" / "screens"))

from record import RUN, SHELL, Place

from tests.wait import until

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(240)]

LEAVE = {"claude": "/exit", "codex": "/quit", "opencode": "/exit"}
TEXT = "Say hello, please: 'quoted', $(not run), C-c.\n-p in the second line 🚀"


@pytest.fixture(params=["claude", "codex", "opencode"])
def at(request, tmp_path):
    replies = {
        "Say hello, please": say("Hello to you."),
        "Take your time.": after(20, say("That took long.")),
        "Ask me first.": SHELL[request.param],
    }

    def script(asked):
        said = "\n".join(asked.said)
        key = next((k for k in reversed(replies) if k in said), "")  # the newest of them
        return replies.pop(key, say("Well."))

    with ModelServer(script) as server:
        place = Place(request.param, tmp_path, server, trusted=True)
        place.server = server
        yield place
        place.close()


def until_state(at, state):
    until(lambda: at.is_there() and at.terminals.screen(RUN).state is state, at.screen)


def test_an_interface_is_driven_from_its_start_to_its_end(at):
    until(lambda: at.terminals.is_ready(RUN), at.screen)
    at.terminals.paste(RUN, TEXT)
    until(lambda: "Hello to you." in at.screen(), at.screen)
    assert any(TEXT in words for asked in at.server.turns for words in asked.said)

    until(lambda: at.terminals.is_ready(RUN), at.screen)
    at.terminals.paste(RUN, "Take your time.")
    until_state(at, ScreenState.WORKING)
    for _ in range(2 if at.program == "opencode" else 1):
        at.terminals.press(RUN, "Escape")
        time.sleep(0.3)
    until(lambda: at.terminals.is_ready(RUN), at.screen)

    at.terminals.paste(RUN, "Ask me first.")
    until_state(at, ScreenState.WANTS)
    asked = len(at.server.turns)
    with pytest.raises(Refused):
        at.terminals.paste(RUN, "yes")
    time.sleep(0.5)
    assert at.terminals.screen(RUN).state is ScreenState.WANTS
    assert len(at.server.turns) == asked
    at.terminals.press(RUN, "Escape")

    until(lambda: at.terminals.is_ready(RUN), at.screen)
    at.terminals.paste(RUN, LEAVE[at.program])
    until(lambda: at.keepers.look(RUN).presence is Presence.EXITED, at.screen)
    assert at.keepers.look(RUN).code == 0
