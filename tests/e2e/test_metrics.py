"""The figures of a server: each is moved by what it counts."""

from __future__ import annotations

import json
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fleet.testing.fake_node.node import FakeNode
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.integration.listeners import Sse
from tests.wait import until

WORLD = """\
nodes:
  box:
    endpoint: {url}
models:
  small:
    node: box
    ollama_model: tiny:1b
    litellm_alias: small
agents:
  greeter: {{coder: scripted, model: small}}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    scratch = Scratch(tmp_path_factory.mktemp("metrics"))
    with FakeNode(["tiny:1b"]) as node:
        (scratch.repo / "fleet.yaml").write_text(WORLD.format(url=node.url))
        made = Served(scratch)
        yield made
        made.close()


def figures(served) -> dict[str, float]:
    status, headers, text = served.raw("GET", "/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_what_runs_do_moves_the_figures(served):
    before = figures(served)
    scratch = served.scratch
    good = scratch.add("Good", script="usage 1200 34 0.25\nsay Done.")
    bad = scratch.add("Bad", "--attempts", "1", script="exit 3")
    scratch.wait_for(good, "done")
    scratch.wait_for(bad, "failed")
    name = 'fleet_runs_total{ending="failed",coder="scripted"}'
    until(lambda: figures(served).get(name), "the run to be counted")
    after = figures(served)
    moved = {key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key)}
    assert moved['fleet_tasks{state="done"}'] == 1
    assert moved['fleet_tasks{state="failed"}'] == 1
    assert moved['fleet_runs_total{ending="succeeded",coder="scripted"}'] == 1
    assert moved[name] == 1
    assert moved['fleet_tokens_total{kind="input"}'] == 1200
    assert moved['fleet_tokens_total{kind="output"}'] == 34
    assert moved["fleet_cost_dollars_total"] == 0.25
    assert moved["fleet_queue_wait_seconds_count"] == 2
    assert moved["fleet_spawn_seconds_count"] == 2
    assert 0 < moved["fleet_spawn_seconds_sum"] < 60
    assert moved['fleet_http_request_seconds_count{method="GET",status="200"}'] >= 1
    assert moved["fleet_event_lag_seconds"]
    assert after["fleet_event_lag_seconds"] > 0


def test_a_request_is_timed_by_how_it_was_answered(served):
    served.ask("GET", "/v1/task/list")
    name = 'fleet_http_request_seconds_count{method="GET",status="401"}'
    first = figures(served)[name]
    served.ask("GET", "/v1/task/list")
    assert figures(served)[name] == first + 1


def test_slots_are_those_of_the_declared_models(served):
    held, free = (f'fleet_slots{{node="box",model="small",state="{s}"}}' for s in ("held", "free"))
    before, scratch = figures(served), served.scratch
    assert (before[held], before[free]) == (0, 1)
    task = scratch("add", "Hold", "--agent", "greeter", "--prompt", "sleep 600", "--json")
    until(lambda: figures(served)[held] == 1, "the slot to be held")
    assert figures(served)[free] == 0
    scratch("cancel", json.loads(task)["data"]["id"])
    until(lambda: figures(served)[held] == 0, "the slot to be free")


def test_prometheus_own_parser_reads_every_line(served):
    text = served.raw("GET", "/metrics")[2]
    families = list(text_string_to_metric_families(text))
    written = [line for line in text.splitlines() if not line.startswith("#")]
    assert sum(len(family.samples) for family in families) == len(written)
    assert {family.type for family in families} == {"counter", "gauge", "histogram"}


def test_the_person_who_started_it_needs_no_token(served):
    scratch = served.scratch
    assert scratch.data("health")["status"] == "ok"
    assert served.url in scratch("health")
    rows = scratch.data("metrics")
    assert {"fleet_tasks", "fleet_spawn_seconds_sum"} <= {row["name"] for row in rows}
    assert "# TYPE fleet_tasks gauge" in scratch("metrics", "--prometheus")
    assert served.ask("GET", "/metrics/json")[0] == 401


def test_where_no_server_runs_they_say_how_to_start_one(tmp_path):
    scratch = Scratch(tmp_path)
    for command in ("health", "metrics"):
        assert "fleet serve --background" in scratch.fails(command, status=3)
    away = {"FLEET_URL": "http://127.0.0.1:9"}
    said = scratch.fails("health", status=3, env=away)
    assert "No Fleet server answers" in said
    assert "Connection refused." in said
    assert "Errno" not in said


def test_what_is_refused_and_what_is_open_is_measured(served):
    before = figures(served)
    served.ask("GET", "/v1/task/list", token="x.y.z")
    served.ask("GET", "/health", headers={"Host": "elsewhere.example"})
    reader = Sse(served.port, served.token("ann"))
    after = figures(served)
    assert after['fleet_refusals_total{reason="bad_token"}'] == 1
    assert after['fleet_refusals_total{reason="wrong_host"}'] == 1
    assert after['fleet_streams{kind="sse"}'] == before['fleet_streams{kind="sse"}'] + 1
    assert after["fleet_connections"] >= 2
    assert after["process_open_fds"] > before["process_open_fds"]
    assert after["fleet_writer_queue"] >= 0
    assert after["fleet_audit_dropped_total"] == 0
    reader.close()


def test_the_process_is_measured_under_prometheus_own_names(served):
    now = figures(served)
    assert 10e6 < now["process_resident_memory_bytes"] < now["process_virtual_memory_bytes"]
    assert now["process_cpu_seconds_total"] > 0
    assert now["process_open_fds"] < now["process_max_fds"]
    assert abs(time.time() - now["process_start_time_seconds"]) < 3600


def test_tasks_that_wait_for_a_slot_are_the_depth_of_the_queue(tmp_path):
    served = Served(Scratch(tmp_path), "--no-run")
    try:
        for _ in range(3):
            served.ask("POST", "/v1/task/add", {"title": "x"}, token=served.token("ann"))
        until(lambda: figures(served)["fleet_queue_depth"] == 3, "the queue to be counted")
    finally:
        served.close()
