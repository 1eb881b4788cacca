"""The real programs with their screens, each in a pane of a private tmux, against a scripted model."""

from __future__ import annotations

import subprocess
import time

import pytest

from fleet.adapters.coders.claude.coder import ClaudeCoder
from fleet.adapters.coders.codex.coder import CodexCoder
from fleet.adapters.coders.opencode.coder import OpenCodeCoder
from fleet.domain.transcript import SaidKind
from fleet.testing.model_server import Reply, Say, Tokens, Wait, say
from tests.real.terminal_world import LIST, STOP, YES, World, asking

pytestmark = pytest.mark.real

PROMPT = "-One\n\ttwo \"three\" $(four) `five` 'é字' !six \\"
LATER = 'And\nthen? "x" $(y) \\'


@pytest.fixture(params=[ClaudeCoder(), CodexCoder(), OpenCodeCoder()], ids=lambda c: c.name)
def world(request, tmp_path):
    made = World(tmp_path, request.param)
    yield made
    made.close()


def linked(world: World):
    """A worktree that the program has never seen, of a repository that it has been told to trust."""
    place = world.home / "worktrees" / "new"
    subprocess.run(
        ["git", "worktree", "add", "-q", str(place), "-b", "new"], cwd=world.cwd, check=True
    )
    return place


def test_one_conversation_on_its_screen_is_heard_whole(world):
    name, outside = world.coder.name, world.place / "outside"
    pane = world.pane(
        [
            LIST[name],
            asking(name, outside),
            Reply((Say("Made."),), Tokens(input=100, output=7, cached=2000)),
            Reply((Say("I shall"), Wait(60))),
        ],
        prompt=PROMPT,
        cwd=linked(world),
    ).start()
    pane.until_said(SaidKind.HEARD)
    assert pane.texts(SaidKind.HEARD) == [PROMPT]
    assert pane.heard.session

    pane.until_said(SaidKind.WANTS)
    assert str(outside if name != "opencode" else outside.parent) in pane.heard.wants
    assert pane.listener.words("Not now.") is None
    assert not outside.exists()
    time.sleep(1)  # a dialog takes no keys in its first moment
    pane.key(YES[name]).until_turns_end()
    assert outside.exists()
    assert not pane.heard.wants
    assert pane.heard.last == "Made."
    tools = [said.kind for said in pane.said if "tool" in said.kind]
    assert tools == [SaidKind.TOOL, SaidKind.TOOL_RESULT] * 2

    pane.say(LATER).until(lambda: pane.heard.turns == 2, why="the second turn began")
    assert pane.texts(SaidKind.HEARD)[1] == LATER
    pane.until_shown("I shall").interrupt(STOP[name]).until_turns_end(2)
    assert pane.heard.failed
    assert pane.heard.error == "It was interrupted."

    time.sleep(1)
    assert pane.say("/exit").until_exit() == 0
    assert pane.heard.usage.cached == 2000
    assert pane.heard.peak_context >= 2100
    first = world.servers[0].turns[0]
    assert "You are the test's own agent." in f"{first.system} {first.said}"
    assert PROMPT in first.said


def test_it_goes_on_with_an_earlier_conversation(world):
    if world.coder.name == "opencode":
        pytest.skip("It takes ten seconds to start; its transcript `resume` is recorded.")
    first = world.pane([say("I shall remember 7.")], prompt="Remember 7.").start()
    first.until_turns_end()
    time.sleep(1)
    first.say("/exit").until_exit()
    later = world.pane([say("It was 7.")], prompt="What was it?", session=first.heard.session)
    later.start().until_turns_end()
    assert later.heard.session == first.heard.session
    assert "Remember 7." in world.servers[-1].turns[0].said


def test_a_repository_that_nobody_trusts_is_left_to_a_person(world):
    if world.coder.name == "opencode":
        pytest.skip("It trusts every directory.")
    elsewhere = world.place / "elsewhere"
    subprocess.run(["git", "clone", "-q", str(world.cwd), str(elsewhere)], check=True)
    pane = world.pane([say("Hello.")], cwd=elsewhere).start()
    pane.until_shown("rust this folder")
    assert pane.said == []
