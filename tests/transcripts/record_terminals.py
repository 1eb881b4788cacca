"""Record what the hooks of the real programs write: `record_terminals.py [PROGRAM…]`."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from fleet.adapters.coders.claude.coder import ClaudeCoder  # noqa: E402
from fleet.adapters.coders.codex.coder import CodexCoder  # noqa: E402
from fleet.adapters.coders.opencode.coder import OpenCodeCoder  # noqa: E402
from fleet.domain.transcript import SaidKind  # noqa: E402
from fleet.testing.model_server import Reply, Say, Tokens, Wait, call, fail, say  # noqa: E402
from tests.real.terminal_world import LIST, STOP, YES, World, asking  # noqa: E402  # the path comes first

CODERS = {"claude": ClaudeCoder(), "codex": CodexCoder(), "opencode": OpenCodeCoder()}
TELL = Tokens(input=120, output=42, cached=3000, written=500)
PROMPT = "-One\n\ttwo \"three\" $(four) 'é' \\"


def agents(asked):
    if "/" in asked.conversation:
        return Reply((Wait(1), Say("Two files.")), Tokens(input=5000))
    ask = call("Agent", description="Count", prompt="Count the files", subagent_type="Explore")
    return [ask, say("I have sent someone."), say("There are two files.")][asked.number]


def tool_call(world):
    script = [LIST[world.coder.name], Reply((Say("Done."),), TELL), say("Again.")]
    pane = world.pane(script, prompt=PROMPT).start()
    pane.until_turns_end().say("And\nthen?").until_turns_end(2)
    return leave(pane)


def permission(world):
    script = [asking(world.coder.name, world.place / "outside"), say("Made.")]
    pane = world.pane(script).start().until_said(SaidKind.WANTS)
    time.sleep(1)
    pane.key(YES[world.coder.name]).until_turns_end()
    return leave(pane)


def permission_refused(world):
    script = [asking(world.coder.name, world.place / "outside"), say("Not made.")]
    pane = world.pane(script).start().until_said(SaidKind.WANTS)
    time.sleep(1)
    pane.key("Escape")
    if world.coder.name == "opencode":
        time.sleep(0.5)
        pane.key("Enter")
    pane.until_turns_end()
    return leave(pane)


def interrupted(world):
    pane = world.pane([Reply((Say("I shall"), Wait(30))), say("Well.")]).start()
    pane.until_shown("I shall").interrupt(STOP[world.coder.name])
    pane.until_turns_end().say("Go on.").until_turns_end(2)
    return leave(pane)


def words_mid_turn(world):
    slow = {"Bash": "command", "exec_command": "cmd", "bash": "command"}
    part = LIST[world.coder.name].parts[0]
    wait = call(part.name, **{**part.input, slow[part.name]: "sleep 2"})
    pane = world.pane([wait, say("Heard you."), say("Next.")]).start().until_said(SaidKind.TOOL)
    pane.say("Also this.").until_turns_end()
    return leave(pane)


def resume(world):
    first = world.pane([say("Remembered: 7.")], prompt="Remember 7.").start().until_turns_end()
    session = leave(first).heard.session
    pane = world.pane([Reply((Say("It was 7."),), TELL)], session=session).start()
    if pane.launch.stdin:
        pane.until_shown("Remembered: 7.")
        time.sleep(1)
        pane.say(pane.launch.stdin)
    return leave(pane.until_turns_end())


def failed(world):
    pane = world.pane([fail(401, "Bad key.")] * 30).start()
    return leave(pane.until_turns_end())


def limited(world):
    pane = world.pane([fail(429, "Slow down.")] * 30).start()
    return leave(pane.until_turns_end())


def agent_in_background(world):
    return leave(world.pane(agents).start().until_turns_end(2))


def cleared(world):
    pane = world.pane([say("One."), say("Two.")]).start().until_turns_end()
    pane.say("/clear").until(lambda: len(pane.texts(SaidKind.SESSION)) > 1)
    return leave(pane.say("Anew.").until_turns_end(2))


def leave(pane):
    time.sleep(1)
    pane.say("/exit")
    with suppress(AssertionError):  # OpenCode says goodbye, and now and then stays
        pane.until(lambda: pane.status() is not None)
    pane.step()
    return pane


EVERY = (tool_call, permission, permission_refused, interrupted, words_mid_turn, resume)
CASES = {
    "claude": (*EVERY, failed, limited, agent_in_background, cleared),
    "codex": EVERY,
    "opencode": (*EVERY, failed),
}


def record(program: str, case) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        world = World(Path(place), CODERS[program])
        try:
            pane = case(world)
            raw, opening = pane.raw, pane.launch.opening
        finally:
            world.close()
        home = str(world.home)
        raw = raw.replace(home, "/home/me").replace(home.replace("/", "-"), "-home-me")
        folder = HERE / f"{program}-terminal" / case.__name__.replace("_", "-")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "raw.jsonl").write_text(raw.replace(place, "/fleet"))
        (folder / "opening").write_text(f"{opening}\n")
    print(program, case.__name__, flush=True)


if __name__ == "__main__":
    for program in sys.argv[1:] or CODERS:
        for case in CASES[program]:
            record(program, case)
