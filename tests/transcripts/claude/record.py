"""Record what the real Claude Code prints: `record.py [CASE…]`, all of them when none is named."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from fleet.adapters.coders.claude.coder import ClaudeCoder  # noqa: E402
from fleet.adapters.processes.keepers import Keepers  # noqa: E402
from fleet.domain.transcript import SaidKind  # noqa: E402
from fleet.ports import Brief  # noqa: E402
from fleet.testing.model_server import (  # noqa: E402
    Asked,
    Call,
    ModelServer,
    Reply,
    Say,
    Think,
    Tokens,
    Wait,
    call,
    fail,
    hang,
    limited,
    say,
)  # fmt: skip
from tests.real.programs import Drive, private_env, repository  # noqa: E402  # the path comes first

TELL = Tokens(input=120, output=42, cached=3000, written=500)
RESET = 1_900_000_000


def agents(asked: Asked) -> Reply:
    """The second agent answers only when the first has long ended its turn."""
    if "/" in asked.conversation:
        return Reply((Wait(1), Say("Two files.")), Tokens(input=5000))
    ask = call("Agent", description="Count", prompt="Count the files", subagent_type="Explore")
    return [ask, say("I have sent someone."), say("There are two files.")][asked.number]


SCRIPTS = {
    "simple-edit": [
        call("Read", file_path="{cwd}/hello.txt"),
        call("Edit", file_path="{cwd}/hello.txt", old_string="world", new_string="fleet"),
        Reply((Say("Done: it greets the fleet."),), TELL),
    ],
    "tool-call": [
        call("Bash", command="echo one; echo two >&2; exit 3", description="Try it"),
        say("It failed with status 3."),
    ],
    "thinking": [Reply((Think("Let me see."), Say("Yes.")), TELL)],
    "two-turns": [say("First."), say("Second.")],
    "words-mid-turn": [
        Reply((Say("I look."), Call("Bash", {"command": "sleep 1.5; ls"}))),
        say("Heard you."),
    ],
    "words-mid-reply": [Reply((Say("Working"), Wait(1.5), Say(" on it."))), say("Heard both.")],
    "resume": [say("Remembered: 7."), say("It was 7.")],
    "401": [fail(401, "Invalid bearer token")] * 9,
    "429-retried": [fail(429, "Slow down.", retry_after=1), say("At last.")],
    "429-final": [fail(429, "Slow down.", retry_after=1)] * 9,
    "429-subscription": [limited(RESET)] * 9,
    "killed": [call("Bash", command="ls"), Reply((Say("I was about to"), Wait()))],
    "terminated": [call("Bash", command="ls"), hang()],
    "permission-denied": [
        call("Write", file_path="{home}/outside.txt", content="x"),
        call("Bash", command="cp hello.txt {home}/outside.txt"),
        say("I may not."),
    ],
    "no-such-session": [],
    "agent-in-background": agents,
    "budget": [Reply((Call("Bash", {"command": "ls"}),), Tokens(100_000, 1_000))] * 9,
    "too-long": [fail(400, "prompt is too long: 210000 tokens > 200000 maximum")],
}


class Recording:
    def __init__(self, case: str, place: Path, server: ModelServer) -> None:
        self.case = case
        self.home = place / "home"
        key = {"ANTHROPIC_AUTH_TOKEN": "scripted"}
        if case == "429-subscription":
            key = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted"}
        if case == "agent-in-background":
            key["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] = "0"
        env = private_env(
            self.home, ANTHROPIC_BASE_URL=server.url, CLAUDE_CODE_MAX_RETRIES="2", **key
        )
        cwd = repository(self.home / "repo")
        brief = Brief(
            "t-1.1", f"Please do: {case}.", str(cwd), str(place / "task"), "scripted", env=env
        )
        if case == "budget":
            brief = brief._replace(model="sonnet", options={"budget_usd": 0.5})
        self.keepers = Keepers(place / "runs")
        self.drive = Drive(ClaudeCoder(), self.keepers, brief)

    def go(self) -> None:
        act = getattr(self, self.case.replace("-", "_"), None)
        act() if act else self.drive.run()
        run = self.keepers.folder(self.drive.brief.run_id)
        folder = HERE / self.case
        folder.mkdir(exist_ok=True)
        raw = (run / "transcript").read_text().replace(str(self.home), "/home/me")
        raw = raw.replace(str(self.home).replace("/", "-"), "-home-me")
        (folder / "raw.jsonl").write_text(raw.replace(str(self.home.parent), "/fleet"))
        (folder / "opening").write_text(self.keepers.opening(self.drive.brief.run_id) + "\n")

    def two_turns(self) -> None:
        self.drive.start().until_turn_ends().say("And then?").until_turn_ends(2).end()

    def words_mid_turn(self) -> None:
        self.drive.start().until_said(SaidKind.TOOL)
        self.drive.say("Also this.").say("And that.").until_turn_ends().end()

    def words_mid_reply(self) -> None:
        self.drive.start().until_said(SaidKind.TEXT, "Working")
        self.drive.say("Also this.").say("And that.").until_turn_ends(2).end()

    def resume(self) -> None:
        self.drive.run()
        session = self.drive.heard.session
        self.drive = self.drive.again("t-1.2", session=session, prompt="What was it?")
        self.drive.run()

    def no_such_session(self) -> None:
        nobody = "00000000-0000-4000-8000-000000000000"
        self.drive = self.drive.again("t-1.2", session=nobody)
        self.drive.run()

    def killed(self) -> None:
        """In the middle of a line: the last one is torn."""
        self.drive.start().until_said(SaidKind.TEXT, "about")
        self.drive.stop(0).over()
        transcript = self.keepers.folder("t-1.1") / "transcript"
        transcript.write_bytes(transcript.read_bytes()[:-200])

    def terminated(self) -> None:
        self.drive.start().until_said(SaidKind.TOOL_RESULT)
        time.sleep(0.3)
        self.drive.stop(10).over()

    def agent_in_background(self) -> None:
        self.drive.start().until_turn_ends().end()


def record(case: str) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        home = str(Path(place, "home"))

        def script(asked: Asked) -> Reply:
            told = SCRIPTS[case]
            reply = told(asked) if callable(told) else told[asked.number]
            return _filled(reply, home)

        with ModelServer(script) as server:
            Recording(case, Path(place), server).go()
    print(case)


def _filled(reply: Reply, home: str) -> Reply:
    def fill(value: object) -> object:
        if not isinstance(value, str):
            return value
        return value.replace("{cwd}", f"{home}/repo").replace("{home}", home)

    def part(one: object) -> object:
        if isinstance(one, Call):
            return Call(one.name, {key: fill(value) for key, value in one.input.items()})
        return one

    return Reply(tuple(map(part, reply.parts)), reply.tokens, reply.headers, reply.fail)


if __name__ == "__main__":
    for case in sys.argv[1:] or SCRIPTS:
        record(case)
