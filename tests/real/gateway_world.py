"""Four machines, the relay and the real LiteLLM before them, and a project that is generated."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from programs import ROOT, private_env, repository
from terminal_world import at_home

from fleet.adapters.host.checks import free_pair
from fleet.testing.fake_node import FakeNode
from fleet.testing.model_server import ModelServer, say

if TYPE_CHECKING:
    from fleet.testing.model_server import Asked, Reply

BIN = Path(sys.executable).parent
SMALL, HEAVY, THIRD = "qwen-coder:7b", "qwen-coder:32b", "deepseek-coder:33b"
PLAN = "You plan for the shop; you change nothing."
BUILD = "You build what the shop's planner has planned."
REVIEW = "You review for the shop."
FLY = "You fly what the shop has built."
SIT = "You sit beside the shopkeeper."
FLEET_YAML = """\
project:
  name: shop
  gateway: {{port: {port}}}
nodes:
  mini-16gb: {{endpoint: "{small}"}}
  mini-64gb: {{kind: openai, endpoint: "{heavy}"}}
  laptop: {{endpoint: "{laptop}"}}
  tower: {{endpoint: "{tower}"}}
models:
  small-coder: {{node: mini-16gb, upstream: "{SMALL}", alias: claude-haiku-local, context: 65536}}
  heavy-coder: {{node: mini-64gb, upstream: "{HEAVY}", alias: claude-sonnet-local, context: 65536}}
  pair-coder:
    servings: {{laptop: "{THIRD}", tower: "{THIRD}"}}
    alias: pair
    context: 16384
    fallbacks: [small-coder]
agents:
  planner:
    model: small-coder
    description: Plans.
    tools: [Read, Grep, Glob]
    prompt: {PLAN}
  implementer:
    model: heavy-coder
    description: Builds.
    tools: [Read, Edit, Write, Bash]
    prompt: {BUILD}
  reviewer:
    model: pair-coder
    description: Reviews.
    tools: [Read, Grep, Bash]
    permissions: read
    prompt: {REVIEW}
  pilot:
    coder: codex
    model: heavy-coder
    description: Flies.
    prompt: {FLY}
  pair:
    coder: aider
    model: small-coder
    description: Sits beside you.
    prompt: {SIT}
"""


@cache
def litellm() -> str:
    """The Python that has it; installed when it is not there yet."""
    ran = subprocess.run(
        [ROOT / "scripts/litellm"], check=True, capture_output=True, text=True, timeout=1200
    )
    return ran.stdout.strip().splitlines()[-1]


class GatewayWorld:
    """`script`: what the heavy model replies. It can be changed as long as nobody asks it."""

    def __init__(self, place: Path) -> None:
        self.place, self.home = place, place / "home"
        self.repo = repository(place / "shop")
        self.script: Any = lambda _asked: say("Done.")
        self.small = FakeNode([SMALL])
        self.heavy = ModelServer(self._reply)
        self.laptop, self.tower = FakeNode([THIRD]), FakeNode([THIRD])
        self.port = free_pair(20_000 + os.getpid() % 20_000)
        self.env = private_env(
            self.home,
            FLEET_HOME=str(place / "fleet"),
            FLEET_GATEWAY_PYTHON=litellm(),
            FLEET_RUN_BACKOFF="0.2",
            LOGNAME="me",
            IS_SANDBOX="1",
            DISABLE_AUTOUPDATER="1",
            CLAUDE_CODE_MAX_RETRIES="1",
            OPENCODE_DISABLE_AUTOUPDATE="1",
        )
        self.env["PATH"] = os.pathsep.join([str(BIN), self.env["PATH"]])
        for program in ("claude", "codex", "opencode"):
            at_home(program, self.home, self.repo)

    def _reply(self, asked: Asked) -> Reply:
        return self.script(asked)

    def __enter__(self) -> GatewayWorld:
        self._open = ExitStack()
        for node in (self.small, self.heavy, self.laptop, self.tower):
            self._open.enter_context(node)
        urls = {name: getattr(self, name).url for name in ("small", "heavy", "laptop", "tower")}
        text = FLEET_YAML.format(port=self.port, **urls, **globals())
        (self.repo / "fleet.yaml").write_text(text)
        self.fleet("gateway", "start", timeout=240)
        self._open.callback(self.fleet, "gateway", "stop")
        targets = [word for name in TARGETS for word in ("-t", name)]
        self.fleet("generate", *targets)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def fleet(self, *words: str, timeout: float = 90) -> str:
        return self.run([str(BIN / "fleet"), *words], timeout=timeout)

    def data(self, *words: str) -> Any:
        return json.loads(self.fleet(*words, "--json"))["data"]

    def type(self, *words: str, timeout: float = 90) -> str:
        """In a shell that has sourced what was generated."""
        line = f". ./.env.subagent-fleet && {shlex.join(words)}"
        return self.run(["bash", "-c", line], timeout=timeout)

    def run(self, argv: list[str], *, timeout: float) -> str:
        ran = subprocess.run(
            argv, cwd=self.repo, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=timeout, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, f"$ {argv}\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}"
        return ran.stdout

    @property
    def key(self) -> str:
        return (self.place / "fleet" / "gateway.key").read_text().strip()

    def open(self, path: str, body: dict[str, Any], *, timeout: float = 60, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            json.dumps(body).encode(),
            {"authorization": f"Bearer {self.key}", "content-type": "application/json", **named},
        )
        return urllib.request.urlopen(request, timeout=timeout)

    def ask(self, model: str, **headers: str) -> Any:
        body = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
        with self.open("/v1/chat/completions", body, **headers) as answer:
            return json.load(answer)


TARGETS = ("litellm", "claude", "codex", "opencode", "aider", "env")
