"""`fleet status`, `fleet agents` and `subagent-fleet status`, as they are typed."""

from __future__ import annotations

import subprocess
import time

import pytest

from fleet.testing.fake_node.node import FakeNode
from tests.e2e.scratch import BIN, Scratch
from tests.e2e.served import Served
from tests.wait import until

NODES = """\
project: {{name: local-dev}}
nodes:
  laptop: {{endpoint: "{url}"}}
models:
  small: {{node: laptop, ollama_model: "qwen2.5-coder:7b", litellm_alias: claude-haiku-local}}
agents:
  planner: {{coder: codex, model: small, description: Plans.}}
  writer:
    coder: scripted
    description: Writes.
"""


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


@pytest.fixture
def laptop():
    node = FakeNode(["qwen2.5-coder:7b"]).start()
    yield node
    node.stop()


def test_with_nothing_here_the_page_says_what_to_type(scratch):
    assert scratch("status") == (
        "supervisor  not running: fleet run\n"
        "server      not running: fleet serve --background\n"
        'work        no tasks: fleet add "TITLE" queues one\n'
        "nodes       none declared: `fleet init` writes a fleet.yaml with one\n"
    )


def test_what_needs_you_comes_with_the_command_to_type(scratch):
    failed = scratch.add("Break", script="exit 3")
    asking = scratch.add("Choose", script="ask Which way?")
    done = scratch.add("Notes", script="write notes.txt hello\ncommit Notes")
    scratch.work()
    page = scratch("status")
    assert "work        1 asking, 1 failed, 1 done and not merged\n" in page
    needs = page.split("Needs you:\n")[1].splitlines()
    assert [" ".join(line.split()) for line in needs] == [
        "TASK WHAT ABOUT NEXT",
        f"{asking} asks Which way? fleet answer {asking} TEXT",
        f"{failed} failed Exit status 3. fleet retry {failed}",
        f"{done} not merged fleet/{done} fleet merge {done}",
    ]
    scratch("merge", done)
    data = scratch.data("status")
    assert (data["tasks"], data["not_merged"]) == ({"asking": 1, "failed": 1}, 0)
    assert [need["what"] for need in data["needs_you"]] == ["asks", "failed"]


def test_a_supervisor_and_the_agents_at_work_are_shown(scratch):
    with scratch.supervisor() as process:
        task = scratch.add("Work", script="sleep 600")
        scratch.wait_for(task, "running")
        page = scratch("status")
        assert f"pid {process.pid}\n" in page
        assert "supervisor  running since " in page
        assert f"fleet/{task}" in page.split("Agents at work:\n")[1]


def test_the_nodes_and_routes_end_the_page_and_keep_their_keys(scratch, laptop):
    (scratch.repo / "fleet.yaml").write_text(NODES.format(url=laptop.url))
    page, nodes = scratch("status"), scratch("nodes")
    arrow = "planner -> laptop -> qwen2.5-coder:7b -> claude-haiku-local\n"
    assert page.split("Agent routing:\n")[1] == nodes.split("Agent routing:\n")[1] == arrow
    assert nodes.startswith("Fleet: local-dev\n")
    status = scratch.data("status")
    assert {"fleet", "nodes", "routes", "relay"} == scratch.data("nodes").keys() & status.keys()
    assert status["nodes"][0]["models"] == ["qwen2.5-coder:7b"]


def test_the_older_name_of_the_program_shows_the_nodes_alone(scratch, laptop):
    (scratch.repo / "fleet.yaml").write_text(NODES.format(url=laptop.url))
    done = subprocess.run(
        [BIN / "subagent-fleet", "status"],
        cwd=scratch.repo,
        env=scratch.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Fleet: local-dev\nNODE ")
    assert "supervisor" not in done.stdout


def test_a_node_that_is_silent_costs_no_more_than_the_deadline(scratch, laptop):
    laptop.set(hang=True)
    (scratch.repo / "fleet.yaml").write_text(NODES.format(url=laptop.url))
    began = time.monotonic()
    assert scratch.data("status", "--timeout", "0.3")["nodes"][0]["status"] == "offline"
    assert time.monotonic() - began < 10


def test_the_page_of_a_server_elsewhere_tells_of_the_work_there(tmp_path):
    served = Served(Scratch(tmp_path / "there"))
    try:
        away = Scratch(tmp_path / "here")
        away.env |= {"FLEET_URL": served.url, "FLEET_TOKEN": served.token("bob", "coordinator")}
        asking = away.add("Choose", script="ask Which way?")
        until(lambda: away.data("questions"), "the question")
        page = away("status")
        assert f"server  running at {served.url}\n" in page
        assert f"fleet answer {asking} TEXT" in page
        assert not (away.home / "fleet.db").exists()
    finally:
        served.close()
    done = away.type("status")
    assert done.returncode == 3
    assert f"server  {served.url} does not answer\n" in done.stdout


def test_agents_says_whether_each_could_work_here(scratch, laptop):
    (scratch.repo / "fleet.yaml").write_text(NODES.format(url=laptop.url))
    alone = {"PATH": str(BIN)}  # no coder is installed there
    rows = [line.split() for line in scratch("agents", env=alone).splitlines()]
    assert rows[1] == [
        "planner",
        "codex",
        "codex:",
        "not",
        "found",
        "small",
        "laptop",
        "online",
        "fleet.yaml:7",
    ]
    assert rows[2] == ["writer", "scripted", "-", "-", "-", "fleet.yaml:9"]
    laptop.set(refuse=True)
    planner = scratch.data("agents", "planner", env=alone)
    assert (planner["path"], planner["nodes"][0]["status"]) == (None, "offline")
    assert "Did you mean 'planner'?" in scratch.fails("agents", "plannr", status=2)


def test_agents_without_any_says_where_they_go(scratch):
    assert scratch("agents") == (
        "No agents are declared. Declare them under `agents:` in fleet.yaml.\n"
    )
