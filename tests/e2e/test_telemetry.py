"""Traces of tasks, runs and requests, as a collector on loopback gets them."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import pytest

from fleet.adapters.otel.export import Collector, Exporter
from fleet.domain.errors import Refused
from fleet.domain.nodes.trace import Times, TokenCounts, Trace, TraceSource, written
from tests.e2e.scratch import Scratch
from tests.otlp_stand_in import OtlpStandIn, attributes

REQUEST = Trace(
    at=0,
    agent="implementer",
    session="s-1",
    model="heavy",
    wire="ollama",
    node="box",
    upstream="qwen:7b",
    source=TraceSource("t-1.1"),
    tokens=TokenCounts(900, 30),
    times=Times(0.0, 0.25, 1.5),
    outcome="ok",
    status=200,
)


@pytest.fixture
def collector():
    with OtlpStandIn() as stand_in:
        yield stand_in


@pytest.fixture
def fleet(tmp_path, collector):
    scratch = Scratch(tmp_path)
    (scratch.repo / "fleet.yaml").write_text(
        f"observability: {{otlp: '{collector.url}', otlp_headers: os.environ/OTLP_KEY}}\n"
    )
    scratch.env["OTLP_KEY"] = "Authorization=Bearer of-the-collector"
    return scratch


def work(fleet):
    """A task whose gate adds a request to the traces, as the relay does."""
    line = written(replace(REQUEST, at=time.time_ns() // 1000))
    (fleet.root / "line").write_text(line + "\n")
    traces = fleet.home / "logs" / "traces.jsonl"
    traces.parent.mkdir(parents=True, exist_ok=True)
    traces.touch()
    fleet("add", "A private title", "--gate", f"cat {fleet.root}/line >> {traces}")
    fleet("run", "--once")


def test_a_task_its_run_and_its_request_are_one_trace(fleet, collector):
    fleet("trust")
    work(fleet)
    (task,) = collector.named("task t-1")
    (run,) = collector.named("invoke_agent scripted")
    (request,) = collector.named("chat heavy")
    assert task.trace_id == run.trace_id == request.trace_id
    assert (task.parent_span_id, run.parent_span_id) == (b"", task.span_id)
    assert request.parent_span_id == run.span_id
    assert attributes(run)["fleet.run.ending"] == "succeeded"
    facts = attributes(request)
    assert facts["gen_ai.operation.name"] == "chat"
    assert facts["gen_ai.response.model"] == "qwen:7b"
    assert facts["gen_ai.usage.input_tokens"] == 900
    assert facts["fleet.node"] == "box"
    assert request.end_time_unix_nano - request.start_time_unix_nano == 1_500_000_000
    assert set(collector.paths) == {"/v1/traces"}
    assert collector.headers[0]["authorization"] == "Bearer of-the-collector"
    assert "private title" not in str(collector.spans)


def test_nothing_is_sent_for_a_project_that_is_not_trusted(fleet, collector):
    work(fleet)
    assert collector.paths == []


def test_a_failed_task_is_an_error_and_a_collector_that_refuses_is_a_warning(fleet, collector):
    fleet("trust")
    fleet("add", "Fail", "--gate", "false", "--attempts", "1")
    fleet("run", "--once")
    (task,) = collector.named("task t-1")
    assert task.status.code == 2
    assert attributes(task)["error.type"] == "failed"
    collector.status = 400
    fleet("add", "Again")
    done = fleet.type("run", "--once")
    assert f"Traces cannot be sent to {collector.url}: it did not take them" in (
        done.stdout + done.stderr
    )


def test_a_collector_that_is_not_there_is_one_sentence(fleet, collector):
    fleet("trust")
    fleet("add", "Fail", "--gate", "false", "--attempts", "1")
    collector.__exit__()
    done = fleet.type("run", "--once")
    shown = done.stdout + done.stderr
    assert shown.count(f"Traces cannot be sent to {collector.url}: ") == 1
    assert "HTTPConnectionPool" not in shown


def test_without_the_extra_the_error_has_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)  # as if it were not there
    with pytest.raises(Refused) as refused:
        Exporter(Collector("http://127.0.0.1:9"), "box", print)
    assert refused.value.fix == "Install it: pip install 'agent-fleet[otel]'"
