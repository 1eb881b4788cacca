"""Record what `opencode acp` says: `record.py [CASE…]`, all of them when none is named."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from fleet.adapters.coders.acp.coder import AcpCoder  # noqa: E402
from fleet.domain.transcript import SaidKind  # noqa: E402
from fleet.testing.model_server import call, fail, hang, say  # noqa: E402
from tests.real.acp_agent import opencode  # noqa: E402  # the path comes first
from tests.real.driver import Place  # noqa: E402
from tests.transcripts.recording import OF_OPENCODE, play, record_each  # noqa: E402

SCRIPTS = {
    **OF_OPENCODE,
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
    nobody = "ses_000000000000000000000000"
    return play(case, run, place, nobody=nobody, dies_after=SaidKind.TOOL_RESULT)


if __name__ == "__main__":
    record_each(HERE, SCRIPTS, lambda _, folder: Place(AcpCoder(), folder), act)
