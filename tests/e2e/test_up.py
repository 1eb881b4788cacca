"""`fleet up` and `fleet down`: all of it at once, on stand-ins."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.machines import FLEET, Machines, alive
from tests.wait import until


@pytest.fixture
def machines(tmp_path):
    made = Machines(tmp_path)
    yield made
    made.close()


def standing(machines) -> dict:
    """The process ids of all that `up` starts; None for what does not run."""
    held = {name: each["pid"] for name, each in machines.services().items()}
    done = machines.scratch.type("run", "status", "--json")
    return held | {"supervisor": json.loads(done.stdout)["data"]["pid"]}


def test_up_starts_all_of_it_and_says_what_is_ready(machines):
    done = machines.scratch.type("up")
    assert done.returncode == 0, done.stderr
    first = done.stdout.split("\n\n")[0].splitlines()
    assert first == [
        "Your fleet is ready.",
        "Planner goes to your small model.",
        "Implementer goes to your big model.",
        f"Claude Code can now connect to LiteLLM at http://127.0.0.1:{machines.port}.",
    ]
    table = [line.split() for line in done.stdout.splitlines()]
    assert ["planner", "laptop", "qwen2.5-coder:7b", "fleet-planner"] in table
    for words in ("Starting the relay", "Starting LiteLLM", "small-coder is resident on laptop"):
        assert words in done.stderr
    assert machines.laptop.resident == {"qwen2.5-coder:7b": 16_384}
    assert machines.mini.resident == {"qwen2.5-coder:32b": 32_768}
    assert None not in standing(machines).values()
    assert machines.ask("fleet-planner")["choices"]


def test_up_again_changes_nothing_and_down_ends_all_and_again_nothing(machines):
    machines.scratch("up")
    before = standing(machines)
    machines.scratch("up")
    assert standing(machines) == before
    data = machines.scratch.data("down")
    assert (data["pid"], data["stopped"]) == (before["supervisor"], ["gateway", "relay"])
    assert not any(map(alive, before.values()))
    assert (
        machines.scratch("down") == "No supervisor is running here.\nThe gateway is not running.\n"
    )
    machines.scratch("up", "--no-warm")
    assert None not in standing(machines).values()


def test_up_tells_what_it_did_to_programs(machines):
    data = machines.scratch.data("up")
    assert data["ready"] is True
    assert data["url"] == f"http://127.0.0.1:{machines.port}"
    assert [(each["agent"], each["node"], each["to"]) for each in data["agents"]] == [
        ("planner", "laptop", "your small model"),
        ("implementer", "mini", "your big model"),
    ]
    assert {each["state"] for each in data["models"]} == {"ok"}


def test_up_with_a_node_that_is_off_starts_the_rest_and_says_so(machines):
    machines.mini.set(refuse=True)
    done = machines.scratch.type("up")
    assert done.returncode == 1
    assert done.stdout.startswith("Your fleet is up, but not all of it.\n")
    assert "heavy-coder could not be loaded on mini: connection refused" in done.stdout
    assert done.stderr.startswith("mini does not answer: connection refused.\n")
    assert None not in standing(machines).values()
    machines.mini.heal()
    assert machines.scratch("up").startswith("Your fleet is ready.\n")


def test_up_waits_for_no_node_that_hangs(machines):
    machines.mini.set(hang=True)
    done = machines.scratch.type("up")
    assert done.returncode == 1
    assert "heavy-coder could not be loaded on mini: no answer" in done.stdout
    assert {seen.method for seen in machines.mini.seen} == {"GET"}, "it was not told to load"
    assert None not in standing(machines).values()


def test_up_leaves_a_model_that_takes_long_to_the_background(machines):
    machines.mini.set(load=100_000.0)
    done = machines.scratch.type("up")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Your fleet is up, but not all of it.\n")
    assert "heavy-coder is still loading on mini; it goes on in the background." in done.stdout
    assert "small-coder is resident on laptop" in done.stderr
    assert None not in standing(machines).values()
    loads = lambda: [seen for seen in machines.mini.seen if seen.method == "POST"]  # noqa: E731
    until(lambda: len(loads()) > 1, "the background goes on")


def test_up_names_generate_only_until_its_files_are_there(machines):
    assert "fleet generate " in machines.scratch("up")
    machines.scratch("generate")
    assert "fleet generate " not in machines.scratch("up")


def test_up_says_that_it_installs_litellm_before_it_does(machines):
    """pip finds nothing here: what was not installed is told, and nothing was started."""
    del machines.scratch.env["FLEET_GATEWAY_PYTHON"]
    nowhere = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}
    done = machines.scratch.type("up", env=nowhere, timeout=110)
    assert done.returncode == 3, done.stderr
    lines = done.stderr.splitlines()
    size = f"about 750 MB, once, in {machines.scratch.home}/gateway/litellm."
    assert re.fullmatch(
        rf"LiteLLM \S+, which is the gateway, is not installed yet: {re.escape(size)}", lines[0]
    )
    assert lines[1].startswith("Installing LiteLLM ")
    assert "LiteLLM could not be installed" in lines[2]
    assert set(standing(machines).values()) == {None}


def test_up_loads_nothing_large_when_no_node_answers(machines):
    del machines.scratch.env["FLEET_GATEWAY_PYTHON"]
    for node in (machines.laptop, machines.mini):
        node.set(refuse=True)
    text = machines.scratch.fails("up", status=3)
    assert "laptop does not answer: connection refused." in text
    assert "mini does not answer: connection refused." in text
    assert "`fleet discover` asks again." in text
    assert "LiteLLM" not in text
    assert not (machines.scratch.home / "gateway").exists()


def test_agents_go_on_after_down_unless_they_are_to_end(machines):
    machines.scratch("up", "--no-warm")
    task = machines.scratch.add(script="sleep 600")
    machines.scratch.wait_for(task, "running")
    assert "1 agent keeps running" in machines.scratch("down")
    assert machines.scratch.status(task) == "running"
    said = machines.scratch("down", "--agents")
    assert "Ended 1 agent" in said
    assert machines.scratch.status(task) != "running"


def test_without_a_fleet_it_says_what_to_do(machines):
    machines.file.unlink()
    assert "There is no fleet.yaml here." in machines.scratch.fails("up", status=2)
    assert (
        machines.scratch("down") == "No supervisor is running here.\nThe gateway is not running.\n"
    )


def test_agents_of_one_model_or_of_none_are_told_plainly(machines):
    text = FLEET.replace("model: heavy-coder", "coder: codex, model: gpt-5-codex")
    machines.write(text)
    lines = machines.scratch("up", "--no-warm").splitlines()
    assert lines[1] == "Planner goes to your model small-coder."
    assert lines[2] == "Implementer goes to gpt-5-codex of codex itself."
