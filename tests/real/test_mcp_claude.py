"""Claude Code itself calls our tools, over HTTP with a token and over pipes without one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleet.testing.model_server import ModelServer, call, say
from tests.real.programs import private_env, repository

pytestmark = pytest.mark.real

BIN = Path(sys.executable).parent
LOG = "server.log"


class Place:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd = repository(root / "repo")
        self.env = private_env(root / "home", FLEET_HOME=str(root / "fleet"), LOGNAME="me")
        self.env["PATH"] = f"{BIN}:{self.env['PATH']}"

    def __enter__(self):
        with (self.root / LOG).open("w") as log:
            self.server = subprocess.Popen(
                ["fleet", "serve", "--port", "0", "--no-run"],
                cwd=self.cwd, env=self.env, stdout=log, stderr=log,
            )  # fmt: skip
        until = time.monotonic() + 30
        while not (found := re.search(r":(\d+)\. ", (self.root / LOG).read_text())):
            assert time.monotonic() < until
            time.sleep(0.05)
        self.url = f"http://127.0.0.1:{found[1]}"
        return self

    def __exit__(self, *_):
        self.server.terminate()
        assert self.server.wait(20) == 0

    def fleet(self, *words):
        done = subprocess.run(
            ["fleet", *words],
            cwd=self.cwd,
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def claude(self, server, model):
        """What it said at the end, with this MCP server."""
        config = self.root / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"fleet": server}}))
        done = subprocess.run(
            [
                "claude", "-p", "Keep the port.", "--model", "scripted", "--output-format", "json",
                "--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", "mcp__fleet",
            ],
            cwd=self.cwd,
            env=self.env | {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_AUTH_TOKEN": "sk-scripted"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["result"]


@pytest.mark.parametrize("way", ["http", "pipes"])
def test_it_sees_our_tools_and_calls_one(tmp_path, way):
    script = [call("mcp__fleet__memory_store", key="port", value="It is 4000"), say("Kept.")]
    with Place(tmp_path) as place, ModelServer(script) as model:
        if way == "http":
            token = json.loads(
                place.fleet("token", "create", "claudia", "--role", "worker", "--json")
            )["data"]["token"]
            headers = {"Authorization": f"Bearer {token}"}
            server = {"type": "http", "url": f"{place.url}/mcp", "headers": headers}
        else:
            who = {"CLAUDE_CODE_AGENT_NAME": "claudia", "CLAUDE_CODE_AGENT_TYPE": "worker"}
            server = {"type": "stdio", "command": "claude-fleet-mcp", "env": who}
        assert place.claude(server, model) == "Kept."
        found = json.loads(place.fleet("memory", "search", "port", "--json"))["data"]
        assert [(row["agent"], row["value"]) for row in found] == [("claudia", "It is 4000")]
