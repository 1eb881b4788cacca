"""`fleet demo --compute`: one task of the real Claude Code, three agents, three nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.real.gateway_world import litellm
from tests.real.programs import private_env

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.xdist_group("litellm")]

FLEET = Path(sys.executable).with_name("fleet")
ROUTES = [
    "planner -> m4-mini-16gb -> qwen-coder:7b",
    "implementer -> m4-mini-64gb -> qwen-coder:32b",
    "reviewer -> laptop -> qwen-coder:14b",
]


class Stool:
    """Somebody who has nothing but the programs, and a place for scratch that is theirs alone."""

    def __init__(self, place: Path) -> None:
        self.tmp = place / "tmp"
        self.tmp.mkdir()
        self.env = private_env(place / "home", TMPDIR=str(self.tmp), FLEET_GATEWAY_PYTHON=litellm())

    def start(self, *words: str, **env: str) -> subprocess.Popen:
        return subprocess.Popen(
            [FLEET, "demo", "--compute", *words],
            cwd=self.tmp.parent, env=self.env | env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
            start_new_session=True,
        )  # fmt: skip

    def run(self, *words: str, **env: str) -> str:
        process = self.start(*words, **env)
        out, err = process.communicate(timeout=240)
        assert (process.returncode, err) == (0, ""), out + err
        return out

    def left(self) -> list[str]:
        """The files and the processes that are left of it."""
        found = [str(path) for path in self.tmp.iterdir()]
        for place in Path("/proc").iterdir():
            with suppress(OSError):
                if place.name.isdigit() and int(place.name) != os.getpid():
                    environ = (place / "environ").read_bytes()
                    if f"TMPDIR={self.tmp}".encode() in environ:
                        found.append((place / "cmdline").read_text().replace("\0", " "))
        return found


@pytest.fixture
def stool(tmp_path):
    return Stool(tmp_path)


def test_every_agent_of_one_claude_code_task_is_served_by_its_own_node(stool):
    out = stool.run()
    lines = [line for line in out.splitlines() if " -> " in line]
    assert lines == ROUTES
    assert "One Claude Code task, three agents, three nodes" in out
    assert "All local. No cloud token burn." in out
    assert stool.left() == []


def test_without_claude_code_the_gateway_is_asked_as_each_agent_would(stool):
    out = stool.run("--json", PATH="/usr/local/bin:/usr/bin:/bin")
    data = json.loads(out)["data"]
    assert data["coder"] is None
    routes = [f"{r['agent']} -> {r['node']} -> {r['model']}" for r in data["routes"]]
    assert (routes, {r["requests"] for r in data["routes"]}) == (ROUTES, {1})
    assert stool.left() == []


def test_when_it_is_ended_at_work_nothing_is_left(stool):
    process = stool.start()
    for line in process.stdout:
        if line.startswith("planner -> "):
            break
    os.killpg(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in err
    assert stool.left() == []
