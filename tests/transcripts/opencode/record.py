"""Record what the real OpenCode says: `record.py [CASE…]`, all of them when none is named."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "real"))

from driver import Place, is_quiet, record, tear  # noqa: E402  # the path comes first

from fleet.adapters.coders.opencode import OpenCodeCoder  # noqa: E402
from fleet.domain.transcript import SaidKind  # noqa: E402
from fleet.testing.model_server import (  # noqa: E402
    Asked,
    Call,
    Reply,
    Say,
    Think,
    Tokens,
    Wait,
    call,
    fail,
    hang,
    say,
)  # fmt: skip


def agents(asked: Asked) -> Reply:
    """One that it starts itself, in a session of its own."""
    if "Count." in asked.said:
        return say("Two files.", input=5000)
    look = call("task", description="Count", prompt="Count.", subagent_type="general")
    return [look, say("There are two files.")][asked.number]


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
    "words-mid-turn": [call("bash", command="sleep 1.5; ls", description="x"), say("Heard you.")],
    "words-mid-reply": [Reply((Say("Working"), Wait(1.5), Say(" on it."))), say("Heard you.")],
    "resume": [say("Remembered: 7."), call("bash", command="ls", description="x"), say("7.")],
    "401": [fail(401, "Invalid key")] * 9,
    "429-retried": [fail(429, "Rate limit reached.", retry_after=1), say("At last.")],
    "429-far": [fail(429, "Rate limit reached.", retry_after=3600)] * 9,
    "429-final": [fail(429, "Rate limit reached.", retry_after=0)] * 9,
    "500-final": [fail(500, "Oops.", retry_after=0)] * 9,
    "killed": [call("bash", command="ls", description="x"), hang()],
    "permission-denied": [call("write", filePath="{home}/out.txt", content="x"), say("I may not.")],
    "permission-asked": [call("write", filePath="{home}/out.txt", content="x"), say("I may not.")],
    "no-such-session": [],
    "agent-of-its-own": agents,
}


class Asking(OpenCodeCoder):
    """As it comes with a rule of the user's that has it ask."""

    def launch(self, brief):
        launch = super().launch(brief)
        config = json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])
        config["agent"]["fleet-run"]["permission"]["external_directory"] = "ask"
        return launch._replace(env={**launch.env, "OPENCODE_CONFIG_CONTENT": json.dumps(config)})


def act(case: str, place: Place):
    run = place.drive(SCRIPTS[case], prompt=f"Please do: {case}.")
    match case:
        case "two-turns":
            run.start().until_turn_ends().say("And then?").until(lambda: is_quiet(run)).end()
        case "words-mid-turn":
            run.start().until_said(SaidKind.TOOL).say("Also this.").say("And that.")
            run.until(lambda: is_quiet(run)).end()
        case "words-mid-reply":
            run.start().until(lambda: place.asked)
            time.sleep(0.5)
            run.say("Also this.").until(lambda: is_quiet(run)).end()
        case "resume":
            run.run()
            run = place.again(run, prompt="What was it?")
            run.run()
        case "no-such-session":
            run = run.again("t-1.2", session="ses_000000000000000000000000")
            run.run()
        case "killed":
            run.start().until_said(SaidKind.USAGE)
            run.stop(0).over()
            tear(run)
        case _:
            run.start().until_turn_ends().end()
    return run


def main(cases: list[str]) -> None:
    for case in cases:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            coder = Asking() if case == "permission-asked" else OpenCodeCoder()
            place = Place(coder, Path(folder))
            record(act(case, place), place, HERE / case)
            place.close()
        print(case)


if __name__ == "__main__":
    main(sys.argv[1:] or list(SCRIPTS))
