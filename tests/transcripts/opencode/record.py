"""Record what the real OpenCode says: `record.py [CASE…]`, all of them when none is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from fleet.adapters.coders.opencode.coder import OpenCodeCoder  # noqa: E402
from fleet.domain.transcript import SaidKind  # noqa: E402
from fleet.testing.model_server import Asked, Reply, Say, Wait, call, fail, hang, say  # noqa: E402
from tests.real.driver import Place  # noqa: E402  # the path comes first
from tests.transcripts.recording import OF_OPENCODE, play, record_each  # noqa: E402


def agents(asked: Asked) -> Reply:
    """One that it starts itself, in a session of its own."""
    if "Count." in asked.said:
        return say("Two files.", input=5000)
    look = call("task", description="Count", prompt="Count.", subagent_type="general")
    return [look, say("There are two files.")][asked.number]


SCRIPTS = {
    **OF_OPENCODE,
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
    nobody = "ses_000000000000000000000000"
    return play(case, run, place, nobody=nobody, dies_after=SaidKind.USAGE)


def place_of(case: str, folder: Path) -> Place:
    return Place(Asking() if case == "permission-asked" else OpenCodeCoder(), folder)


if __name__ == "__main__":
    record_each(HERE, SCRIPTS, place_of, act)
