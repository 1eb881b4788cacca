"""Record what the real programs' screens look like, in tmux, against a scripted model.

    .venv/bin/python tests/transcripts/screens/record.py claude codex opencode

Writes `<program>/<case>.txt`: where the cursor is, then the text. What each must be read as is in
`expected.toml`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from fleet.adapters.processes.keepers import Keepers  # noqa: E402
from fleet.adapters.tmux.terminals import Terminals  # noqa: E402
from fleet.adapters.tmux.tmux import Tmux  # noqa: E402
from fleet.ports import Launch  # noqa: E402
from fleet.testing.model_server import ModelServer, after, call, say  # noqa: E402
from tests.real.programs import private_env, repository  # noqa: E402  # from the folder of the real tests

RUN = "t-1.1"
READY = ("manual mode on", "Ask Codex to do anything", "Ask anything")
SHELL = {
    "claude": call("Bash", command="touch ../outside.txt", description="Make a file outside"),
    "codex": call("exec_command", cmd="ls /", sandbox_permissions="require_escalated",
                  justification="May I look?"),
    "opencode": call("bash", command="touch ../outside.txt", description="Make a file outside"),
}  # fmt: skip
WRITE = {
    "claude": call("Write", file_path="new.txt", content="new\n"),
    "codex": call("exec_command", cmd="rm -rf /nowhere", sandbox_permissions="require_escalated",
                  justification="May I remove it?"),
    "opencode": call("write", filePath="new.txt", content="new\n"),
}  # fmt: skip


class Place:
    def __init__(self, program: str, place: Path, server: ModelServer, *, trusted: bool) -> None:
        self.program, self.place = program, place
        self.cwd = repository(place / "repo")
        self.env = private_env(place / "home", THE_KEY="sk-scripted", TERM="screen-256color")
        argv = getattr(self, program)(server.url, trusted)
        self.terminals = Terminals(place / "runs", Tmux(place))
        self.keepers = Keepers(place / "runs", terminals=self.terminals)
        self.keepers.launch(RUN, Launch(tuple(argv), str(self.cwd), self.env, terminal=True))

    def claude(self, url: str, trusted: bool) -> list[str]:
        known = {"hasTrustDialogAccepted": trusted, "hasCompletedProjectOnboarding": True}
        settings = {"hasCompletedOnboarding": True, "projects": {str(self.cwd): known}}
        Path(self.env["HOME"], ".claude.json").write_text(json.dumps(settings))
        self.env |= {
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "scripted", "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }  # fmt: skip
        return ["claude", "--model", "scripted", "--permission-mode", "default"]

    def codex(self, url: str, trusted: bool) -> list[str]:
        folder = Path(self.env["HOME"], ".codex")
        folder.mkdir()
        (folder / "config.toml").write_text(
            'model = "scripted"\nmodel_provider = "fleet"\ncheck_for_update_on_startup = false\n'
            "[analytics]\nenabled = false\n[features]\nplugins = false\n"
            f'[model_providers.fleet]\nname = "Fleet"\nbase_url = "{url}/v1"\n'
            'env_key = "THE_KEY"\nwire_api = "responses"\n'
            + (f'[projects."{self.cwd}"]\ntrust_level = "trusted"\n' if trusted else "")
        )
        return ["codex"]

    def opencode(self, url: str, _trusted: bool) -> list[str]:
        provider = {
            "npm": "@ai-sdk/openai-compatible", "name": "Fleet",
            "options": {"baseURL": f"{url}/v1", "apiKey": "{env:THE_KEY}"},
            "models": {"scripted": {"name": "scripted", "tool_call": True}},
        }  # fmt: skip
        config = {
            "autoupdate": False, "share": "disabled", "model": "fleet/scripted",
            "small_model": "fleet/scripted", "provider": {"fleet": provider},
            "permission": {"bash": "ask", "edit": "ask"},
        }  # fmt: skip
        self.env |= {
            "OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }  # fmt: skip
        return ["opencode"]

    def settle(self, seconds: float = 1.0, timeout: float = 30.0) -> str:
        """The screen, once it has not changed for so long."""
        last, since, end = "", time.monotonic(), time.monotonic() + timeout
        while time.monotonic() < end:
            text = self.screen()
            if text != last:
                last, since = text, time.monotonic()
            elif text and time.monotonic() - since > seconds:
                break
            time.sleep(0.05)
        return last

    def is_there(self) -> bool:
        return bool((self.place / "runs" / RUN / "keeper.json").exists())

    def until(self, *words: str, calm: float = 1.5) -> str:
        """The screen, once one of these is on it and it no longer changes."""
        end = time.monotonic() + 60
        while not any(word in (self.screen()) for word in words) and time.monotonic() < end:
            time.sleep(0.05)
        return self.settle(calm) if calm else self.screen()

    def screen(self) -> str:
        return self.terminals.screen(RUN).text if self.is_there() else ""

    def keep(self, case: str, text: str) -> None:
        folder = HERE / self.program
        folder.mkdir(exist_ok=True)
        for there, shown in ((str(self.place / "home"), "/home/me"), (str(self.place), "/src")):
            text = text.replace(there, shown)
        column, line = self.terminals.screen(RUN).cursor
        (folder / f"{case}.txt").write_text(f"cursor {column} {line}\n{text}\n")
        print(f"--- {self.program} {case} {self.terminals.screen(RUN)[1:]}\n{text}")

    def type(self, text: str) -> str:
        """Without an Enter."""
        pane = json.loads((self.place / "runs" / RUN / "keeper.json").read_text())["pane"]
        self.terminals.tmux.paste(pane, text.encode())
        return self.until(text)

    def clear(self) -> None:
        self.terminals.press(RUN, "C-u")
        self.settle(0.5)

    def say(self, text: str) -> None:
        started = time.monotonic()
        self.terminals.paste(RUN, text)
        print(f"    pasted in {time.monotonic() - started:.3f} s")

    def close(self) -> None:
        while not self.keepers.end(RUN):
            time.sleep(0.1)


def record(program: str) -> None:
    replies = {
        "Say hello, please.": say("Hello to you."),
        "Take your time.": after(8, say("That took long.")),
        "permission-command": SHELL[program],
        "permission-write": WRITE[program],
    }

    def script(asked):
        """Each once, by what was said."""
        key = next((k for k in replies if k in "\n".join(asked.said)), "")
        return replies.pop(key, say("Well."))

    with tempfile.TemporaryDirectory() as place, ModelServer(script) as server:
        at = Place(program, Path(place), server, trusted=True)
        try:
            at.keep("ready", at.until(*READY))
            at.keep("typed", at.type("a draft of somebody's"))
            at.clear()
            at.say("Say hello, please.\nIn two lines, 'quoted' and $(not run).")
            at.keep("answered", at.until("Hello to you."))
            at.say("Take your time.")
            at.keep("working", at.until("esc to interrupt", "esc interrupt", calm=0))
            for _ in range(2 if program == "opencode" else 1):
                at.terminals.press(RUN, "Escape")
                time.sleep(0.5)
            at.keep("interrupted", at.settle(2))
            at.clear()
            for case in ("permission-command", "permission-write"):
                at.say(f"Now {case}.")
                at.keep(case, at.until("Esc to cancel", "esc to cancel", "Allow once"))
                at.terminals.press(RUN, "Escape")
                at.keep(f"{case}-denied", at.settle(2))
        finally:
            at.close()


def record_trust(program: str) -> None:
    with tempfile.TemporaryDirectory() as place, ModelServer([]) as server:
        at = Place(program, Path(place), server, trusted=False)
        try:
            at.keep("trust", at.until("trust this folder", "Trust this folder"))
        finally:
            at.close()


def record_panels() -> None:
    """What Claude Code opens by commands of its own."""
    with tempfile.TemporaryDirectory() as place, ModelServer([]) as server:
        at = Place("claude", Path(place), server, trusted=True)
        try:
            at.until(*READY)
            for case, words in (("help", "For more help"), ("model", "Select model")):
                at.say(f"/{case}")
                at.keep(f"panel-{case}", at.until(words))
                at.terminals.press(RUN, "Escape")
                at.settle()
            at.say("/login")  # it asks the same after the theme, where nothing says who pays
            at.keep("login", at.until("Select login method:"))
        finally:
            at.close()


def record_first_start(program: str) -> None:
    """What a program asks in a home that it has never seen."""
    with tempfile.TemporaryDirectory() as place, ModelServer([]) as server:
        at = Unknown(program, Path(place), server, trusted=False)
        try:
            if program == "codex":
                at.keep("login", at.until("Sign in with ChatGPT"))
                return
            at.keep("theme", at.until("To change this later, run /theme"))
            at.terminals.press(RUN, "Enter")
            at.keep("notes", at.until("Security notes:"))
        finally:
            at.close()


class Unknown(Place):
    """With the program's own files removed, as before its first start."""

    def claude(self, url: str, trusted: bool) -> list[str]:
        argv = super().claude(url, trusted)
        Path(self.env["HOME"], ".claude.json").unlink()
        return argv

    def codex(self, _url: str, _trusted: bool) -> list[str]:
        return ["codex"]


if __name__ == "__main__":
    for one in sys.argv[1:]:
        record(one)
        if one != "opencode":  # it asks nothing
            record_trust(one)
            record_first_start(one)
        if one == "claude":
            record_panels()
