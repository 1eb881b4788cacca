"""A repository, a scripted model behind a gateway of its own, and `fleet` as a person types it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from fleet.base import machine
from fleet.testing.model_server import ModelServer, call
from tests.real.programs import private_env, repository
from tests.wait import LIMIT, until

FLEET = Path(sys.executable).with_name("fleet")
COMMIT = "git -c user.name=A -c user.email=a@example.invalid commit -qam Work"
SHELL = {"claude": "Bash", "codex": "exec_command", "opencode": "bash", "acp": "bash"}
CONTEXT = 60_000
FLEET_YAML = """
project: {{name: greetings, gateway: {{host: 127.0.0.1, port: {port}}}}}
nodes: {{here: {{kind: openai, endpoint: "{url}"}}}}
models: {{scripted: {{node: here, upstream: scripted, alias: scripted-model, context: {context}}}}}
agents: {{greeter: {{coder: {coder}, model: scripted, description: Greets.{more}}}}}
"""
OPENCODE = {
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{url}/v1", "apiKey": "sk-test"},
            "models": {"scripted-model": {}},
        }
    },
    "model": "scripted/scripted-model",
}


def shell(coder: str, command: str):
    """The model asks for this command, in the coder's own words."""
    name = SHELL[coder]
    if coder == "codex":
        return call(name, cmd=command)
    return call(name, command=command, description="Do it")


class ModelScratch:
    def __init__(self, coder: str, place: Path, script, **env: str) -> None:
        self.coder = coder
        self.place = place
        self.repo = repository(place / "repo")
        self.server = ModelServer(script)
        self.url = self.server.url
        self.env = private_env(
            place / "home",
            FLEET_HOME=str(place / "fleet"),
            LOGNAME="me",
            LITELLM_MASTER_KEY="sk-test",
            FLEET_RUN_BACKOFF="0.2",
            CLAUDE_CODE_MAX_RETRIES="1",
            **env,
        )
        self.supervisor: subprocess.Popen | None = None

    def __enter__(self):
        self.server.__enter__()
        more = ""
        if self.coder == "acp":
            more = ", command: [opencode, acp]"
            told = json.dumps(OPENCODE).replace("{url}", self.url)
            self.env["OPENCODE_CONFIG_CONTENT"] = told
        port = self.url.rpartition(":")[2]
        text = FLEET_YAML.format(
            port=port, url=self.url, coder=self.coder, context=CONTEXT, more=more
        )
        (self.repo / "fleet.yaml").write_text(text)
        if more:
            self("trust")
        return self

    def declare(self, **fields: str) -> None:
        """Add these to the agent's declaration, and trust it."""
        file = self.repo / "fleet.yaml"
        more = "".join(f", {name}: {value}" for name, value in fields.items())
        file.write_text(
            file.read_text().replace("description: Greets.", f"description: Greets.{more}")
        )
        self("trust")

    def __exit__(self, *_) -> None:
        if self.supervisor is not None:
            for task in self.data("tasks", "--status", "running"):
                self("cancel", task["id"])
            self.supervisor.send_signal(signal.SIGTERM)
            self.supervisor.wait(20)
        self.server.__exit__()

    def __call__(self, *words: str) -> str:
        ran = subprocess.run(
            [FLEET, *words],
            cwd=self.repo, env=self.env, capture_output=True, text=True, timeout=2 * LIMIT, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def data(self, *words: str):
        return json.loads(self(*words, "--json"))["data"]

    def add(self, title: str, *words: str) -> None:
        self("add", title, "--agent", "greeter", *words)

    def start(self) -> None:
        log = (self.place / "supervisor.log").open("ab")
        self.supervisor = subprocess.Popen(
            [FLEET, "run"],
            cwd=self.repo, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip

    def kill_supervisor(self) -> None:
        assert self.supervisor is not None
        self.supervisor.kill()
        self.supervisor.wait()
        self.supervisor = None

    def status(self, task: str = "t-1") -> str:
        return self.data("show", task)["task"]["status"]

    def runs(self, task: str = "t-1") -> list:
        return self.data("show", task)["runs"]

    def endings(self, task: str = "t-1") -> list[str]:
        return [run["ending"] for run in self.runs(task)]

    def until(self, so, *, why: str = "") -> None:
        until(so, why=lambda: f"{why}\n{self.story()}")

    def wait(self, *statuses: str) -> None:
        self.until(lambda: self.status() in statuses, why=f"{statuses}")

    def story(self) -> str:
        with suppress(Exception):
            file = self.place / "supervisor.log"
            log = file.read_text() if file.exists() else ""
            lines = self("logs", "t-1", "--raw").splitlines()[-6:]
            return self("show", "t-1") + log + "\n".join(line[:600] for line in lines)
        return ""

    def coder_pid(self, run: str) -> int:
        """The process that the keeper started."""
        file = self.place / "fleet" / "runs" / run / "keeper.json"
        (pid,) = machine.children(json.loads(file.read_text())["pid"])
        return pid

    def greeting(self) -> str:
        return self.committed("hello.txt")

    def committed(self, name: str) -> str:
        """The file as it is on the task's branch."""
        ran = subprocess.run(
            ["git", "show", f"fleet/t-1:{name}"], cwd=self.repo, capture_output=True, check=True
        )
        return ran.stdout.decode("utf-8", "replace")

    def conversations(self) -> int:
        return len({asked.conversation for asked in self.server.turns})
