"""Record what the real Gemini CLI says: `record.py [CASE…]`, all of them when none is named."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from fleet.adapters.coders.acp.gemini import GeminiCoder  # noqa: E402
from fleet.domain.transcript import SaidKind  # noqa: E402
from fleet.testing.model_server import (  # noqa: E402
    Call,
    Fail,
    Reply,
    Think,
    call,
    fail,
    hang,
    say,
)  # fmt: skip
from tests.real.driver import Place, is_quiet  # noqa: E402  # the path comes first
from tests.transcripts.recording import play, record_each  # noqa: E402

QUOTA = "type.googleapis.com/google.rpc.QuotaFailure"
SPENT = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": QUOTA, "violations": [{"quotaId": "GenerateRequestsPerDay"}]}],
    }
}
SLOW = call("run_shell_command", command="sleep 1.5; ls", description="x")
SCRIPTS = {
    "simple-edit": [
        call("read_file", file_path="{cwd}/hello.txt"),
        call("replace", file_path="{cwd}/hello.txt", old_string="world", new_string="fleet",
             instruction="Greet the fleet."),
        say("It greets the fleet.", input=120, output=42, cached=3000),
    ],
    "tool-call": [
        Reply((Think("Try it."), Call("run_shell_command", {"command": "exit 3"}))),
        call("read_file", file_path="{cwd}/nothing.txt"),
        say("It failed."),
    ],
    "words-after": [SLOW, say("Done."), say("Heard you.")],
    "401": [fail(401, "API key not valid.")],
    "429-final": [Reply(fail=Fail(429, body=SPENT))] * 9,
    "edit-outside": [call("write_file", file_path="{home}/out.txt", content="x"), say("I may not.")],
    "read": [call("write_file", file_path="{cwd}/new.txt", content="x"), say("I may not.")],
    "killed": [call("run_shell_command", command="ls"), hang()],
}  # fmt: skip


def act(case: str, place: Place):
    granted = {"permissions": "read"} if case == "read" else {}
    run = place.drive(SCRIPTS[case], prompt=f"Please do: {case}.", **granted)
    if case == "words-after":
        run.start().until_turn_ends().say("Also this.")
        run.until(lambda: is_quiet(run)).end()
        return run
    return play(case, run, place, dies_after=SaidKind.TOOL_RESULT, torn=20)


if __name__ == "__main__":
    record_each(HERE, SCRIPTS, lambda _, folder: Place(GeminiCoder(), folder), act)
