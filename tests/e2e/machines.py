"""A scratch home with two machines that serve models, and a stand-in for LiteLLM between."""

from __future__ import annotations

import json
import shlex
import subprocess
import urllib.request
from pathlib import Path

from fleet.testing.fake_node.node import FakeNode
from tests.e2e.scratch import Scratch
from tests.free_ports import free_ports
from tests.litellm_stand_in import litellm_stand_in
from tests.wait import LIMIT

FLEET = """\
project:
  name: shop
  gateway: {{port: {port}}}
nodes:
  laptop: {{endpoint: "{laptop}"}}
  mini: {{endpoint: "{mini}"}}
models:
  small-coder:
    node: laptop
    upstream: qwen2.5-coder:7b
    alias: claude-haiku-local
    context: 16384
  heavy-coder:
    node: mini
    upstream: qwen2.5-coder:32b
    alias: claude-sonnet-local
    context: 32768
agents:
  planner: {{model: small-coder, description: Plans.}}
  implementer: {{model: heavy-coder, description: Does it.}}
"""


class Machines:
    def __init__(self, root) -> None:
        self.scratch = Scratch(root)
        self.root = root
        self.litellm()
        self.laptop = FakeNode(["qwen2.5-coder:7b"], calls=True).start()
        self.mini = FakeNode(["qwen2.5-coder:32b"], calls=True).start()
        self.port = free_ports()
        self.file = self.scratch.repo / "fleet.yaml"
        self.write()

    def litellm(self, version: str = "1.106.2") -> None:
        self.scratch.env["FLEET_GATEWAY_PYTHON"] = str(litellm_stand_in(self.root / "own", version))

    def write(self, text: str = FLEET) -> None:
        nodes = {"laptop": self.laptop.url, "mini": self.mini.url}
        self.file.write_text(text.format(port=self.port, **nodes))

    def close(self) -> None:
        self.scratch.type("down", "--agents")
        self.laptop.stop()
        self.mini.stop()

    def shell(self, line: str) -> None:
        """As a person types what was printed."""
        subprocess.run(
            ["bash", "-c", line], cwd=self.scratch.repo, env=self.scratch.env, check=True, timeout=LIMIT,
            capture_output=True,
        )  # fmt: skip

    def services(self) -> dict:
        held = self.scratch.data("gateway", "status")["services"]
        return {each["name"]: each for each in held}

    def ask(
        self, model: str = "claude-haiku-local", session: str = "s-1", headers: dict | None = None
    ) -> dict:
        """Through the gateway, as a coder would."""
        key = (self.scratch.home / "gateway.key").read_text().strip()
        body = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/chat/completions",
            json.dumps(body).encode(),
            {"authorization": f"Bearer {key}", "x-fleet-session": session, **(headers or {})},
        )
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return json.load(answer)


def alive(pid: int) -> bool:
    """And no zombie, which a machine without an init to speak of keeps for ever."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def typed(line: str) -> list[str]:
    """The words of a printed `fleet …` line."""
    words = shlex.split(line)
    assert words[0] == "fleet", line
    return words[1:]
