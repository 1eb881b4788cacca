"""What `fleet up` started stays up: the supervisor starts a relay or a gateway again that died."""

from __future__ import annotations

import os
import signal
import urllib.error

import pytest

from tests.e2e.machines import Machines, alive
from tests.wait import until


@pytest.fixture
def machines(tmp_path):
    made = Machines(tmp_path)
    yield made
    made.close()


def kill(machines, name: str) -> int:
    pid = machines.services()[name]["pid"]
    os.kill(pid, signal.SIGKILL)
    return pid


def is_back(machines, name: str, pid: int) -> bool:
    now = machines.services()[name]
    return now["answers"] and now["pid"] not in {None, pid}


@pytest.mark.parametrize("name", ["relay", "gateway"])
def test_a_dead_service_is_started_again_and_status_says_so(machines, name):
    machines.scratch("up", "--no-warm")
    pid = kill(machines, name)
    until(lambda: is_back(machines, name, pid))
    assert machines.ask()["choices"]
    assert machines.services()[name]["restarts"] == 1
    assert "1 restart" in machines.scratch("gateway", "status")
    log = machines.scratch.type("run", "status").stdout
    assert "running" in log


def test_a_service_that_a_person_stopped_stays_stopped_and_tasks_wait_for_it(machines):
    program = machines.root / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    machines.scratch.env["PATH"] += f":{program.parent}"
    machines.scratch("up", "--no-warm")
    machines.scratch("gateway", "stop")
    task = machines.scratch.add("Plan it", "--agent", "planner", "--coder", "claude")
    until(lambda: "the gateway: connection refused" in words(machines, task))
    assert "`fleet up` starts the gateway" in words(machines, task)
    assert {each["pid"] for each in machines.services().values()} == {None}
    assert "gateway     not running: fleet up" in machines.scratch("status")


def test_a_service_that_has_died_and_is_then_stopped_stays_stopped(machines):
    machines.scratch("gateway", "start")
    pid = kill(machines, "gateway")
    until(lambda: not alive(pid))
    assert "Stopped: relay." in machines.scratch("gateway", "stop")
    machines.scratch("run", "--detach")
    task = machines.scratch.add()
    machines.scratch.wait_for(task, "done")  # the supervisor has looked at what it is to keep alive
    assert not list(machines.scratch.home.glob("gateway/*/gateway.json"))
    assert machines.services()["gateway"]["pid"] is None


def words(machines, task: str) -> str:
    return " ".join(machines.scratch.type("show", task).stdout.split())


ASKS = """\
import json, os, sys, time, urllib.request
body = {"model": sys.argv[1], "messages": [{"role": "user", "content": "Hello"}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
    {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"},
)
for _ in range(8):
    while os.path.exists(sys.argv[0] + ".hold"):
        time.sleep(0.01)
    assert json.load(urllib.request.urlopen(request, timeout=60))["choices"]
    time.sleep(0.1)
"""


def add_asker(machines) -> None:
    """An agent that asks its model eight times, and fails when it is not answered."""
    program = machines.root / "asks.py"
    program.write_text(ASKS)
    machines.file.write_text(
        machines.file.read_text()
        + f"  asker: {{coder: command, model: small-coder, command: [python3, {program}, '{{model}}']}}\n"
    )
    machines.scratch("trust")


@pytest.mark.parametrize("name", ["relay", "gateway"])
def test_tasks_lose_no_attempt_while_a_service_is_away(machines, name):
    """Each has one attempt, and asks its model eight times, with no retry of its own."""
    add_asker(machines)
    machines.scratch("up", "--no-warm")
    tasks = [
        machines.scratch.add(f"Ask {n}", "--agent", "asker", "--attempts", "1") for n in range(6)
    ]
    for _ in range(3):
        pid = kill(machines, name)
        until(lambda pid=pid: is_back(machines, name, pid))
    until(lambda: all(state(machines, task) in {"done", "failed"} for task in tasks))
    assert {state(machines, task) for task in tasks} == {"done"}, words(machines, tasks[0])


def test_tasks_wait_for_a_model_that_the_relay_has_shut_off_on_its_only_node(machines):
    """The node answers, its other pages too: only that model's requests fail."""
    add_asker(machines)
    machines.scratch("up", "--no-warm")
    machines.laptop.manner.broken = {"qwen2.5-coder:7b": "model requires more system memory"}
    for _ in range(3):
        with pytest.raises(urllib.error.HTTPError):
            machines.ask()
    task = machines.scratch.add("Ask", "--agent", "asker", "--attempts", "1")
    until(lambda: "laptop (shut off: " in words(machines, task))
    assert "model requires more system memory" in words(machines, task)
    status = " ".join(machines.scratch("status").split())
    assert "(1 task behind it) qwen2.5-coder:7b on laptop: shut off: " in status
    assert "qwen2.5-coder:7b (shut off: it answered with status 500: model requires more" in status
    before = machines.scratch.data("show", task)["runs"]
    assert len(before) <= 1  # at most one began before the supervisor knew
    machines.laptop.manner.broken = {}
    until(lambda: state(machines, task) == "done")
    assert len(machines.scratch.data("show", task)["runs"]) == len(before) + 1


def test_a_failing_model_costs_no_attempt_when_the_traces_cannot_be_written(machines):
    add_asker(machines)
    (machines.scratch.home / "logs" / "traces.jsonl").mkdir(parents=True)
    machines.scratch("up", "--no-warm")
    machines.laptop.manner.broken = {"qwen2.5-coder:7b": "model requires more system memory"}
    task = machines.scratch.add("Ask", "--agent", "asker", "--attempts", "1")
    until(lambda: machines.scratch.data("show", task)["runs"])
    until(lambda: "model requires more system memory" in words(machines, task))
    assert state(machines, task) != "failed"
    machines.laptop.manner.broken = {}
    until(lambda: state(machines, task) in {"done", "failed"})
    assert state(machines, task) == "done"


def test_tasks_wait_while_the_gateway_has_another_key_than_they_would(machines):
    add_asker(machines)
    machines.scratch("up", "--no-warm")
    hold = machines.root / "asks.py.hold"
    hold.touch()
    running = machines.scratch.add("Ask", "--agent", "asker", "--attempts", "1")
    until(lambda: state(machines, running) == "running")
    (machines.scratch.home / "gateway.key").write_text("sk-another\n")
    task = machines.scratch.add("Ask", "--agent", "asker", "--attempts", "1")
    until(lambda: "it was started with another key" in words(machines, task))
    assert "refuses yours" in machines.scratch.type("gateway", "status").stderr
    assert not machines.scratch.data("show", task)["runs"]
    machines.scratch("up", "--no-warm")
    assert "refuses yours" not in machines.scratch.type("gateway", "status").stderr
    assert machines.ask()["choices"]
    hold.unlink()
    until(lambda: {state(machines, each) for each in (running, task)} <= {"done", "failed"})
    assert state(machines, task) == state(machines, running) == "done"
    assert len(machines.scratch.data("show", task)["runs"]) == 1


def state(machines, task: str) -> str:
    return machines.scratch.data("show", task)["task"]["status"]
