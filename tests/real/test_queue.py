"""Codex and OpenCode themselves take tasks from the queue, through a gateway of the project's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from programs import private_env, repository

from fleet.testing.model_server import ModelServer, call, say

pytestmark = pytest.mark.real

FLEET = Path(sys.executable).with_name("fleet")
COMMIT = "git -c user.name=A -c user.email=a@example.invalid commit -qam Work"
SHELL = {"codex": "exec_command", "opencode": "bash"}
FLEET_YAML = """
project: {{name: greetings, gateway: {{host: 127.0.0.1, port: {port}}}}}
nodes: {{here: {{endpoint: http://127.0.0.1:9}}}}
models: {{scripted: {{node: here, upstream: scripted, alias: scripted-model, context: 60000}}}}
agents: {{greeter: {{coder: {coder}, model: scripted, description: Greets.}}}}
"""


def run_shell(coder: str, command: str):
    if coder == "codex":
        return call(SHELL[coder], cmd=command)
    return call(SHELL[coder], command=command, description="Do it")


@pytest.fixture(params=["codex", "opencode"])
def coder(request):
    return request.param


def test_a_task_is_done_in_its_own_worktree_with_the_agents_model(coder, tmp_path):
    repo = repository(tmp_path / "repo")
    script = [
        run_shell(coder, f"sed -i s/world/fleet/ hello.txt && {COMMIT}"),
        say("It greets the fleet."),
    ]
    with ModelServer(script) as server:
        port = server.url.rpartition(":")[2]
        (repo / "fleet.yaml").write_text(FLEET_YAML.format(port=port, coder=coder))
        env = private_env(
            tmp_path / "home",
            FLEET_HOME=str(tmp_path / "fleet"),
            LOGNAME="me",
            LITELLM_MASTER_KEY="sk-test",
        )

        def fleet(*words: str) -> str:
            ran = subprocess.run(
                [FLEET, *words],
                cwd=repo, env=env, capture_output=True, text=True, timeout=90, check=False,
            )  # fmt: skip
            assert ran.returncode == 0, ran.stdout + ran.stderr
            return ran.stdout

        fleet("add", "Greet the fleet", "--agent", "greeter")
        fleet("run", "--once")
        shown = json.loads(fleet("show", "t-1", "--json"))["data"]
        assert shown["task"]["status"] == "done", (shown, fleet("logs", "t-1", "--raw"))
        assert "It greets the fleet." in fleet("logs", "t-1")
        assert {asked.model for asked in server.turns} == {"scripted-model"}
    done = subprocess.run(
        ["git", "show", "fleet/t-1:hello.txt"], cwd=repo, capture_output=True, text=True, check=True
    )
    assert done.stdout == "Hello, fleet.\n"
    assert (repo / "hello.txt").read_text() == "Hello, world.\n"
