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
        'work        nothing open: fleet add "TITLE" queues a task\n'
        "nodes       none declared under nodes: in fleet.yaml\n"
    )


def test_what_needs_you_comes_with_the_command_to_type(scratch):
    failed = scratch.add("Break", script="exit 3")
    asking = scratch.add("Choose", script="ask Which way?")
    done = scratch.add("Notes", script="write notes.txt hello\ncommit Notes")
    scratch.work()
    page = scratch("status")
    assert "work        1 asking, 1 failed, 1 done and not landed\n" in page
    needs = page.split("Needs you:\n")[1].splitlines()
    assert [" ".join(line.split()) for line in needs] == [
        "TASK WHAT ABOUT NEXT",
        f"{asking} asks Which way? fleet answer {asking} TEXT",
        f"{failed} failed Break: Exit status 3. fleet retry {failed}",
        f"{done} not landed Notes: fleet/{done} fleet land {done}",
    ]
    scratch("merge", done)
    data = scratch.data("status")
    assert (data["tasks"], data["not_landed"]) == ({"asking": 1, "failed": 1}, 0)
    assert [need["kind"] for need in data["needs_you"]] == ["question", "failed"]


def test_a_supervisor_and_the_agents_at_work_are_shown(scratch):
    with scratch.supervisor() as process:
        task = scratch.add("Work", script="sleep 600")
        scratch.wait_for(task, "running")
        page = scratch("status")
        assert f"pid {process.pid}\n" in page
        assert "supervisor  running, started " in page
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


def test_fleet_alone_is_the_status(scratch):
    scratch.add("Choose", script="ask Which way?")
    scratch.work()
    assert scratch() == scratch("status")
    assert "fleet answer t-1 TEXT" in scratch()


@pytest.fixture
def two(scratch, tmp_path):
    """Two projects in one home, each with a task that failed."""
    other = tmp_path / "site"
    other.mkdir()
    scratch.git("init", "-q", "-b", "main", cwd=other)
    scratch.git("commit", "-q", "--allow-empty", "-m", "Begin", cwd=other)
    here = scratch.add("Break the shop", "--attempts", "1", script="exit 3")
    add = ("add", "Break the site", "--attempts", "1", "--prompt", "exit 3")
    there = scratch.data(*add, cwd=other)["id"]
    scratch.work()
    return other, here, there


def test_the_page_is_about_this_project_and_everywhere_names_each(scratch, two, tmp_path):
    other, here, there = two
    page = scratch("status")
    assert "work        1 failed\n" in page
    assert f"fleet retry {here}" in page
    assert there not in page
    assert f"fleet retry {there}" in scratch("status", cwd=other)
    page = scratch("status", "--everywhere")
    rows = [line.split() for line in page.split("Needs you:\n")[1].splitlines()]
    assert rows[0] == ["TASK", "PROJECT", "WHAT", "ABOUT", "NEXT"]
    failed = sorted(row[:3] for row in rows[1:])
    assert failed == [[here, "shop", "failed"], [there, "site", "failed"]]
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    assert scratch("status", cwd=outside) == scratch("status", "--everywhere")


def test_lists_of_every_project_name_the_project_of_each_row(scratch, two):
    _, here, there = two
    for words in (["tasks"], ["tasks", "--tree"]):
        shown = scratch(*words, "--everywhere")
        lines = {
            row: line for line in shown.splitlines() for row in (here, there) if row in line.split()
        }
        assert "PROJECT" in shown.splitlines()[0]
        assert (" shop " in lines[here], " site " in lines[there]) == (True, True), shown
    assert "PROJECT" not in scratch("tasks")


@pytest.mark.parametrize("words", [["list"], ["workers"]])
def test_agents_of_every_project_name_theirs(scratch, words):
    with scratch.supervisor():
        task = scratch.add("Work", script="sleep 600")
        scratch.wait_for(task, "running")
        shown = scratch(*words, "--everywhere").splitlines()
        assert "PROJECT" in shown[0]
        assert " shop " in shown[1]


def test_what_does_not_fit_on_the_page_comes_with_the_command_that_lists_it(scratch):
    for number in range(7):
        scratch.add(f"Note {number}", script=f"write {number}.txt x\ncommit Note")
    scratch.work()
    (more,) = [line for line in scratch("status").splitlines() if "and 2 more" in line]
    assert more.endswith("  fleet review")
    listed = scratch("review")
    assert all(f"t-{number}" in listed for number in range(1, 8))


def test_a_mistake_in_the_settings_is_a_line_of_the_page(scratch):
    task = scratch.add("Choose", script="ask Which way?")
    scratch.work()
    (scratch.repo / "fleet.yaml").write_text("codr: mine\n")
    page = scratch("status")
    assert "supervisor  not running: fleet run\n" in page
    (line,) = [
        line for line in page.splitlines() if "fleet.yaml:1: codr: is not a setting." in line
    ]
    assert line.endswith("  fleet validate")
    assert "nodes       unknown: see the mistake below" in page.splitlines()
    assert f"fleet answer {task} TEXT" in page
    assert scratch.data("status")["needs_you"][0]["kind"] == "settings"
    assert "codr" in scratch.fails("status", "--config", "fleet.yaml", status=2)


def test_a_gateway_that_nobody_started_is_named_with_what_starts_it(scratch, laptop, tmp_path):
    (scratch.repo / "fleet.yaml").write_text(NODES.format(url=laptop.url))
    task = scratch.add("Plan it", "--agent", "planner")
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    scratch.env["PATH"] = f"{program.parent}:{scratch.env['PATH']}"
    with scratch.supervisor():
        until(lambda: scratch.data("show", task)["waits"], "the reason")
        page = scratch("status")
        (line,) = [line for line in page.splitlines() if "gateway does not answer" in line]
        assert "(1 task behind it) The gateway does not answer." in line
        assert line.endswith("  fleet up")
        assert "/never" not in page
        other = Scratch(tmp_path / "other")
        other.env |= {"FLEET_HOME": str(scratch.home)}
        assert "gateway does" not in other("status")
    scratch("cancel", task)
    assert "gateway does" not in scratch("status")
