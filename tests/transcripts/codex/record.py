"""Record what the real Codex prints: `record.py [CASE…]`, all of them when none is named."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from fleet.adapters.coders.codex.coder import CodexCoder  # noqa: E402
from fleet.domain.transcript import SaidKind  # noqa: E402
from fleet.testing.model_server import (  # noqa: E402
    Call,
    Fail,
    Reply,
    Say,
    Think,
    Wait,
    call,
    fail,
    hang,
    say,
)  # fmt: skip
from tests.real.driver import Place  # noqa: E402  # the path comes first
from tests.transcripts.recording import GREETING, play, record_each  # noqa: E402

PATCH = (
    "*** Begin Patch\n*** Update File: hello.txt\n@@\n-Hello, world.\n+Hello, fleet.\n*** End Patch"
)
ESCALATE = {"sandbox_permissions": "require_escalated", "justification": "It must be there."}
USED_UP = {"type": "usage_limit_reached", "message": "The usage limit has been reached"}
WINDOW = {
    "x-codex-primary-used-percent": "100",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": "1900000000",
}
NO_RETRY = ("-c", "model_providers.fleet.stream_max_retries=0")
ONE_RETRY = ("-c", "model_providers.fleet.stream_max_retries=1")
SCRIPTS = {
    "simple-edit": [
        Reply((Think("A patch."), Call("exec_command", {"cmd": f"apply_patch <<'E'\n{PATCH}\nE"}))),
        GREETING,
    ],
    "tool-call": [
        call("exec_command", cmd="sleep 0.3; echo one; echo two >&2; exit 3"),
        say("It failed with status 3."),
    ],
    "two-turns": [say("First."), say("Second.")],
    "words-mid-turn": [call("exec_command", cmd="sleep 1; ls"), say("Heard you.")],
    "words-mid-reply": [Reply((Say("Working"), Wait(5))), say("Heard you.")],
    "words-too-late": [say("First."), say("Second.")],
    "resume": [say("Remembered: 7."), call("exec_command", cmd="ls"), say("It was 7.")],
    "401": [fail(401, "Invalid key")] * 9,
    "429-retried": [fail(429, "Slow down.", retry_after=0), say("At last.")],
    "429-final": [fail(429, "Slow down.", retry_after=0)] * 9,
    "429-subscription": [Reply(headers=WINDOW, fail=Fail(429, body={"error": USED_UP}))],
    "killed": [call("exec_command", cmd="sleep 0.3; ls"), hang()],
    "permission-asked": [
        call("exec_command", cmd="touch {home}/outside.txt", **ESCALATE),
        say("I may not."),
    ],
    "no-such-session": [],
}
OPTIONS = {
    "401": NO_RETRY,
    "429-retried": ONE_RETRY,
    "429-final": ONE_RETRY,
    "429-subscription": NO_RETRY,
}


class Asking(CodexCoder):
    """As it comes with a user's setting that has it ask."""

    def launch(self, brief):
        launch = super().launch(brief)
        asking = launch.stdin.replace('"approvalPolicy": "never"', '"approvalPolicy": "on-request"')
        return launch._replace(stdin=asking)


def act(case: str, place: Place):
    run = place.drive(SCRIPTS[case], prompt=f"Please do: {case}.", extra_args=OPTIONS.get(case, ()))
    if case == "words-too-late":
        run.start().until_said(SaidKind.TURN)
        early = run.listener.words("Also this.")
        run.until_turn_ends()
        run.keepers.tell(run.brief.run_id, early, key="words")
        run.until(lambda: run.heard.ended_turns == 2).end()
        return run
    nobody = "00000000-0000-4000-8000-000000000000"
    return play(case, run, place, nobody=nobody, dies_after=SaidKind.TOOL_RESULT)


def place_of(case: str, folder: Path) -> Place:
    return Place(Asking() if case == "permission-asked" else CodexCoder(), folder)


if __name__ == "__main__":
    record_each(HERE, SCRIPTS, place_of, act)
