"""Record what `opencode acp` says: `record.py [CASE…]`, all of them when none is named."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "real"))

from acp_agent import opencode  # noqa: E402  # the path comes first
from driver import Place, is_quiet, record, tear  # noqa: E402

from fleet.adapters.coders.acp import AcpCoder  # noqa: E402
from fleet.domain.transcript import SaidKind  # noqa: E402
from fleet.testing.model_server import (  # noqa: E402
    Call,
    Reply,
    Say,
    Think,
    Tokens,
    call,
    fail,
    hang,
    say,
)  # fmt: skip

SCRIPTS = {
    "simple-edit": [
        call("read", filePath="{cwd}/hello.txt"),
        call("edit", filePath="{cwd}/hello.txt", oldString="world", newString="fleet"),
        Reply((Say("It greets the fleet."),), Tokens(input=120, output=42, cached=3000)),
    ],
    "tool-call": [
        Reply(
            (Think("Try it."), Call("bash", {"command": "echo one; exit 3", "description": "x"}))
        ),
        call("read", filePath="{cwd}/nothing.txt"),
        say("It failed."),
    ],
    "two-turns": [say("First."), say("Second.")],
    "words-mid-turn": [
        call("bash", command="sleep 1.5; ls", description="x"),
        say("I see."),
        say("Heard you."),
    ],
    "resume": [say("Remembered: 7."), say("7.")],
    "401": [fail(401, "Invalid key")] * 9,
    "429-final": [fail(429, "Rate limit reached.", retry_after=0)] * 9,
    "killed": [call("bash", command="ls", description="x"), hang()],
    "permission-refused": [
        call("bash", command="touch {home}/out.txt", description="x"),
        say("I may not."),
    ],
    "permission-granted": [call("bash", command="touch in.txt", description="x"), say("Done.")],
    "taken-for-a-command": [say("Never said.")],
    "no-such-session": [],
}
ASKS = {"permission-refused": {"external_directory": "ask"}, "permission-granted": {"bash": "ask"}}


def act(case: str, place: Place):
    prompt = "/etc/hosts is wrong." if case == "taken-for-a-command" else f"Please do: {case}."
    run = opencode(place, SCRIPTS[case], prompt=prompt, rules=ASKS.get(case), instructions="")
    match case:
        case "two-turns":
            run.start().until_turn_ends().say("And then?").until(lambda: is_quiet(run)).end()
        case "words-mid-turn":
            run.start().until_said(SaidKind.TOOL).say("Also this.").say("And that.")
            run.until(lambda: is_quiet(run)).end()
        case "resume":
            run.run()
            run = place.again(run, prompt="What was it?")
            run.run()
        case "no-such-session":
            run = run.again("t-1.2", session="ses_000000000000000000000000")
            run.run()
        case "killed":
            run.start().until_said(SaidKind.TOOL_RESULT)
            run.stop(0).over()
            tear(run)
        case _:
            run.run()
    return run


def main(cases: list[str]) -> None:
    for case in cases:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            place = Place(AcpCoder(), Path(folder))
            record(act(case, place), place, HERE / case)
            place.close()
        print(case)


if __name__ == "__main__":
    main(sys.argv[1:] or list(SCRIPTS))
