"""Record what the real Aider says: `record.py [CASE…]`, all of them when none is named."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from fleet.domain.transcript import SaidKind  # noqa: E402
from fleet.testing.model_server import Fail, Reply, fail, hang, say  # noqa: E402
from tests.real.aider_place import AiderPlace, edit  # noqa: E402  # the path comes first
from tests.transcripts.recording import record_each  # noqa: E402

LONG = Fail(
    400,
    body={
        "error": {
            "message": "This model's maximum context length is 65536 tokens.",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        }
    },
)
SCRIPTS = {
    "simple-edit": [edit("Hello, fleet."), say("Done.")],
    "no-edit": [say("There is nothing to do.", input=1200, output=9)],
    "resume": [say("I shall remember 7."), say("It was 7.")],
    "read": [say("I only look.")],
    "edit-outside": [edit("x", file="../../out.txt")],
    "401": [fail(401, "Bad key.")],
    "429-final": [fail(429, "Slow down.", retry_after=0)],  # it takes a minute
    "too-long": [Reply(fail=LONG)],
    "killed": [hang()],
}


def act(case: str, place: AiderPlace):
    granted = {"permissions": "read"} if case == "read" else {}
    run = place.drive(SCRIPTS[case], prompt=f"Please do: {case}, in hello.txt.", **granted)
    match case:
        case "resume":
            run.run()
            run = place.again(run, prompt="What was it?")
            run.run()
        case "killed":
            run.start().until_said(SaidKind.TURN)
            run.stop(0).over()
        case _:
            run.start().over()
    return run


if __name__ == "__main__":
    record_each(HERE, SCRIPTS, lambda _, folder: AiderPlace(folder), act)
