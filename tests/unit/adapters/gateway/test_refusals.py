import asyncio
import json

from fleet.adapters.gateway.refusals import PROJECT, TRACES, Refusals
from fleet.domain.nodes.trace import read


class ContextWindowExceededError(Exception):
    status_code = 400


class ProxyException(Exception):
    code = "400"


def traced(tmp_path, monkeypatch, request, error, sent=()):
    path = tmp_path / "traces.jsonl"
    monkeypatch.setenv(TRACES, str(path))
    monkeypatch.setenv(PROJECT, "/home/me/shop")
    log = Refusals()
    for call in sent:
        kwargs = {"litellm_call_id": call, "additional_args": {"api_base": "http://127.0.0.1:1"}}
        log.log_pre_api_call("m", [], kwargs)
    asyncio.run(log.async_post_call_failure_hook(request, error, None))
    lines = path.read_text().splitlines() if path.exists() else []
    return [read(line) for line in lines]


def test_a_refusal_is_a_trace_without_the_words_of_the_exception(tmp_path, monkeypatch):
    request = {
        "model": "fleet-planner",
        "litellm_call_id": "1",
        "proxy_server_request": {"headers": {"x-fleet-run": "t-1.1"}},
    }
    (trace,) = traced(tmp_path, monkeypatch, request, ContextWindowExceededError("my secret"))
    assert (trace.agent, trace.outcome, trace.status) == ("planner", "refused", 400)
    assert trace.source == ("t-1.1", "/home/me/shop")
    assert "too long for the context of fleet-planner" in trace.error
    assert "my secret" not in json.dumps(trace.why)
    assert not trace.is_fault_of_nodes


def test_a_wrong_key_is_named_although_litellm_speaks_of_a_database(tmp_path, monkeypatch):
    (trace,) = traced(tmp_path, monkeypatch, {}, ProxyException("No connected db."))
    assert trace.error == "The gateway refused it: the key is wrong or missing."
    assert (trace.status, trace.is_fault_of_nodes) == (
        401,
        True,
    )  # it was another when it was given


def test_what_reached_the_relay_is_the_relays_to_record(tmp_path, monkeypatch):
    request = {"model": "m", "litellm_call_id": "7"}
    assert traced(tmp_path, monkeypatch, request, ProxyException("x"), sent=["7"]) == []
