"""The queue knows the machines: a task starts when a node that is up has a free slot for its model."""

from __future__ import annotations

import json
import os
import shlex
import time

import pytest

from fleet.adapters.nodes.pulse import NodePulses
from fleet.adapters.processes.background import ServiceRecord, born
from fleet.domain.fleet import Gateway, Node, url_of
from fleet.domain.nodes.trace import Trace, TraceSource, written
from tests.integration.nodes import NodeStandIn
from tests.wait import until

HOUR = 3_600_000_000
SETTINGS = """
nodes:
  left: {{kind: ollama, endpoint: "{left}"}}
  right: {{kind: ollama, endpoint: "{right}"}}
models:
  coder:
    servings: {{left: "qwen:7b", right: "qwen:7b"}}
    context: 32768
  only-left: {{node: left, upstream: "llama:3b"}}
agents:
  implementer: {{coder: scripted, model: coder}}
  lefty: {{coder: scripted, model: only-left}}
"""


@pytest.fixture
def nodes(supervised):
    left, right = NodeStandIn(), NodeStandIn()
    supervised.home.mkdir(exist_ok=True)
    text = SETTINGS.format(left=left.url, right=right.url)
    (supervised.home / "config.yaml").write_text(text)
    yield left, right
    left.stop()
    right.stop()


def work(supervised) -> str:
    """What a coder does, and leaves a mark when it begins and when it ends."""
    marks = shlex.quote(str(supervised.home / "marks"))
    return f"run sh -c {shlex.quote(f'echo + >>{marks}; sleep 0.7; echo - >>{marks}')}"


def coders_at_once(supervised) -> int:
    """The most that worked at one moment."""
    most = now = 0
    for mark in (supervised.home / "marks").read_text().split():
        now += 1 if mark == "+" else -1
        most = max(most, now)
    return most


def test_six_tasks_on_two_nodes_of_one_slot_run_two_at_a_time(supervised, nodes):
    tasks = [supervised.add(work(supervised), agent="implementer") for _ in range(6)]
    supervised.start("--max", "6")
    supervised.wait(*tasks)
    assert coders_at_once(supervised) == 2
    assert {supervised.run(t).choice.node for t in tasks} == {"left", "right"}


def test_show_names_the_slot_that_a_task_waits_for(supervised, nodes):
    first, second = (supervised.add("sleep 20", agent="lefty") for _ in range(2))
    supervised.start()
    supervised.running(first)
    shown = supervised.type("show", second).stdout
    assert f"llama:3b@{nodes[0].url} on node left is full (1/1)" in " ".join(shown.split())


def test_tasks_wait_for_a_node_that_is_down_and_start_soon_after_its_return(supervised, nodes):
    left, _ = nodes
    left.stop()
    task, other = (
        supervised.add("say Hi.", agent="lefty"),
        supervised.add("say Hi.", agent="implementer"),
    )
    supervised.start()
    supervised.wait(other)
    assert supervised.run(other).choice.node == "right"
    until(lambda: "connection refused" in supervised.type("show", task).stdout)
    shown = " ".join(supervised.type("show", task).stdout.split())
    assert "No node that serves its model answers: left (connection refused)." in shown
    assert "`fleet nodes` shows each." in shown
    assert supervised.store.runs(task) == []
    left.start()
    back = time.monotonic()
    until(lambda: supervised.store.runs(task))
    assert time.monotonic() - back < 20
    supervised.wait(task)


def test_a_run_that_fails_because_its_node_went_down_costs_no_attempt(supervised, nodes):
    left, _ = nodes
    task = supervised.add(
        "say Going.", "sleep 2", "fail 1 lost the model", agent="lefty", attempts=1
    )
    supervised.start()
    supervised.heard(task, "Going.")
    left.stop()
    until(lambda: supervised.run(task, 1).outcome)
    assert supervised.endings(task)[0] == "lost"
    assert "Its node left is down" in supervised.run(task, 1).outcome.detail
    left.start()
    supervised.wait(task)
    assert supervised.task(task).tally.failures == 0


def test_a_run_costs_no_attempt_when_the_node_that_the_relay_chose_went_down(supervised, nodes):
    _, right = nodes
    script = ("say Going.", "sleep 2", "fail 1 lost the model")
    task = supervised.add(*script, agent="lefty", attempts=1)
    supervised.start()
    supervised.heard(task, "Going.")
    run = supervised.run(task, 1)
    assert run.choice.node == "left", "which stays up"
    traces = supervised.home / "logs" / "traces.jsonl"
    traces.parent.mkdir(exist_ok=True)
    request = Trace(time.time_ns() // 1000, agent="lefty", node="right", source=TraceSource(run.id))
    traces.write_text(written(request) + "\n")
    right.stop()
    until(lambda: supervised.run(task, 1).outcome)
    assert supervised.endings(task)[0] == "lost"
    assert "Its node right is down" in supervised.run(task, 1).outcome.detail
    supervised.wait(task)
    assert supervised.task(task).tally.failures == 0


def test_a_task_whose_model_is_down_runs_on_its_fallback(supervised, nodes):
    left, _ = nodes
    config = supervised.home / "config.yaml"
    fallback = 'only-left: {node: left, upstream: "llama:3b", fallbacks: [spare]}'
    spare = '  spare: {node: right, upstream: "phi:3b"}'
    text = config.read_text()
    config.write_text(
        text.replace('only-left: {node: left, upstream: "llama:3b"}', f"{fallback}\n{spare}")
    )
    left.stop()
    task = supervised.add("say Hi.", agent="lefty")
    supervised.start()
    supervised.wait(task)
    assert supervised.run(task).choice.node == "right"


def test_a_node_takes_no_more_at_once_than_it_says_over_all_its_models(supervised, nodes):
    config = supervised.home / "config.yaml"
    text = config.read_text().replace(
        "left: {kind: ollama,", "left: {kind: ollama, max_parallel: 1,"
    )
    config.write_text(
        text.replace('servings: {left: "qwen:7b", right: "qwen:7b"}', "node: left\n    upstream: q")
    )
    agents = ("lefty", "implementer", "lefty")
    tasks = [supervised.add(work(supervised), agent=agent) for agent in agents]
    supervised.start("--max", "3")
    supervised.wait(*tasks)
    assert coders_at_once(supervised) == 1


def test_a_gate_does_not_keep_the_model_from_the_next_task(supervised, nodes, tmp_path):
    """The first gate passes only once the second task has the node's one slot."""
    assert nodes
    flag = tmp_path / "second has begun"
    gate = f"until test -e {shlex.quote(str(flag))}; do sleep 0.05; done"
    first = supervised.add("say Hi.", agent="lefty", gate=gate)
    supervised.start()
    supervised.running(first)
    second = supervised.add(f"run touch {shlex.quote(str(flag))}", agent="lefty")
    supervised.wait(first, second)
    assert supervised.run(second, 1).claimed_at < supervised.run(first, 1).ended_at


def test_tasks_that_wait_for_a_node_starve_nobody_behind_them(supervised, nodes):
    for node in nodes:
        node.stop()
    for _ in range(90):
        supervised.add("say Never.", agent="lefty")
    free = supervised.add("say Free.")
    supervised.start()
    supervised.wait(free)


def test_a_node_at_the_gateways_own_address_is_looked_at_as_both(tmp_path):
    stand_in = NodeStandIn()
    pulses = NodePulses(lambda: None, tmp_path)
    gateway = Gateway(port=int(stand_in.url.rpartition(":")[2]))
    node = Node("here", "ollama", url_of(gateway))
    try:
        until(lambda: pulses.pulse(node).up, "the node to be seen")
        assert pulses.gateway(gateway).age is None
    finally:
        stand_in.stop()


def test_a_clock_that_was_set_back_hides_neither_gateway_nor_relay(tmp_path):
    stand_in = NodeStandIn()
    gateway = Gateway(port=int(stand_in.url.rpartition(":")[2]))
    record = ServiceRecord(os.getpid(), born(os.getpid()), time.time_ns() // 1000 + HOUR, 0)
    file = tmp_path / "gateway" / str(gateway.port) / "gateway.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(record._asdict()))
    pulses = NodePulses(lambda: None, tmp_path)
    try:
        until(lambda: pulses.gateway(gateway).why == "the relay: connection refused")
    finally:
        stand_in.stop()
