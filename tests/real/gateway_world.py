"""Five machines, the relay and the real LiteLLM before them, and a project that is generated."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from fleet.adapters.machine.doctor_checks import free_pair
from fleet.testing.fake_node.node import FakeNode
from fleet.testing.model_server import ModelServer, say
from tests.real.programs import ROOT, private_env, repository
from tests.real.terminal_world import at_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.testing.fake_node.node import SeenRequest
    from fleet.testing.model_server import Asked, Reply

BIN = Path(sys.executable).parent
PLACEHOLDER = "DeferredToolPlaceholder"  # Claude Code's own, for tools that it names later
SMALL, HEAVY, THIRD = "qwen-coder:7b", "qwen-coder:32b", "deepseek-coder:33b"
FAR = "Qwen/Qwen3-Coder"
PLAN = "You plan for the shop; you change nothing."
BUILD = "You build what the shop's planner has planned."
REVIEW = "You review for the shop."
FLY = "You fly what the shop has built."
SIT = "You sit beside the shopkeeper."
TARGETS = ("litellm", "claude", "codex", "opencode", "aider", "env")
NODES = ("small", "heavy", "laptop", "tower", "rack")
FLEET_YAML = """\
project:
  name: shop
  gateway: {{port: {port}}}
nodes:
  mini-16gb: {{endpoint: "{small}"}}
  mini-64gb: {{kind: openai, endpoint: "{heavy}"}}
  laptop: {{endpoint: "{laptop}"}}
  tower: {{endpoint: "{tower}"}}
  rack: {{kind: vllm, endpoint: "{rack}"}}
models:
  small-coder: {{node: mini-16gb, upstream: "{SMALL}", alias: claude-haiku-local, context: 65536}}
  heavy-coder: {{node: mini-64gb, upstream: "{HEAVY}", alias: claude-sonnet-local, context: 65536}}
  pair-coder:
    servings: {{laptop: "{THIRD}", tower: "{THIRD}"}}
    alias: pair
    context: 16384
    fallbacks: [small-coder]
  rack-coder: {{node: rack, upstream: "{FAR}", context: 16384, fallbacks: [small-coder]}}
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


class Heard(NamedTuple):
    """A request as a node received it."""

    model: str
    tools: frozenset[str]
    words: str  # what it was told before the user said anything

    @staticmethod
    def of(body: Mapping[str, Any]) -> Heard:
        tools = (tool["function"]["name"] for tool in body.get("tools") or ())
        said = (m for m in body["messages"] if m["role"] in {"system", "developer"})
        words = "\n".join(json.dumps(m["content"], ensure_ascii=False) for m in said)
        return Heard(body["model"], frozenset(tools) - {PLACEHOLDER}, words)


def _body(seen: SeenRequest) -> Mapping[str, Any]:
    return seen.body if isinstance(seen.body, dict) else {}


class GatewayWorld:
    """`script`: what the heavy model replies. It can be changed as long as nobody asks it."""

    def __init__(self, place: Path) -> None:
        self.place, self.home = place, place / "home"
        self.repo = repository(place / "shop")
        self.script: Any = lambda _asked: say("Done.")
        self.small = FakeNode([SMALL])
        self.heavy = ModelServer(self._reply)
        self.laptop, self.tower = FakeNode([THIRD]), FakeNode([THIRD])
        self.rack = FakeNode([FAR], kind="vllm")
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

    def __enter__(self) -> Self:
        self._open = ExitStack()
        nodes = {name: getattr(self, name) for name in NODES}
        urls = {name: self._open.enter_context(node).url for name, node in nodes.items()}
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

    def forget(self) -> None:
        """What the nodes were asked, and how they should behave."""
        self.script = lambda _asked: say("Done.")
        self.heavy.requests.clear()
        for node in (self.small, self.laptop, self.tower, self.rack):
            node.heal()
            node.set(prefill=0, output=8)
            node.seen.clear()
        until = time.monotonic() + 30
        while self._shut_off():
            assert time.monotonic() < until, self._shut_off()
            time.sleep(0.1)

    def _shut_off(self) -> list[str]:
        """The nodes that the relay does not ask now."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port + 1}/relay/status") as answer:
            nodes = json.load(answer)["nodes"]
        return [name for name, node in nodes.items() if node["breaker"] == "open"]

    def heard(self, *names: str) -> list[Heard]:
        """The conversations that these nodes had, without those for a title."""
        found = []
        for name in names:
            node = getattr(self, name)
            if isinstance(node, FakeNode):
                found += [Heard.of(seen.body) for seen in node.seen if "messages" in _body(seen)]
            else:
                found += [Heard.of(asked.body) for asked in node.turns]
        return [one for one in found if "title generator" not in one.words]

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
