from __future__ import annotations

import http.client
import json
import threading
import time

import pytest

from fleet.adapters.relay.plan import speed_key
from fleet.domain.fleet import Model
from tests.integration.loopback_relay import HELLO, MODEL, UPSTREAM, LoopbackRelay, serving


@pytest.fixture
def loopback(tmp_path):
    made = []

    def make(nodes=2, **manner):
        made.append(LoopbackRelay(nodes, traces=tmp_path / "traces.jsonl", **manner))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_dead_node_costs_nobody_an_error_and_is_left_alone(loopback):
    it = loopback()
    it.nodes[0].set(refuse=True)
    it.open()
    got = [it.chat() for _ in range(20)]
    assert [g.status for g in got] == [200] * 20
    assert {g.headers["x-fleet-node"] for g in got} == {"b"}
    held = it.status["nodes"]["a"]
    assert (held["breaker"], "refused" in held["why"]) == ("open", True)


def test_a_machine_without_power_is_given_up_after_the_connect_timeout(loopback):
    it = loopback()
    it.nodes[0].set(drop=True)
    it.open(connect=0.3)
    assert it.chat().headers["x-fleet-node"] == "b"
    it.until(lambda s: s["nodes"]["a"]["breaker"] == "open")
    assert "nothing answers" in it.status["nodes"]["a"]["why"]


WIRES = [
    ("/api/chat", lambda e: e["error"]),
    ("/v1/chat/completions", lambda e: e["error"]["message"]),
    ("/v1/messages", lambda e: e["error"]["message"]),
]


@pytest.mark.parametrize(("path", "message"), WIRES)
def test_when_no_node_is_left_the_answer_is_immediate_and_says_so(loopback, path, message):
    it = loopback()
    for node in it.nodes:
        node.set(refuse=True)
    it.open()
    got = it.post(path, messages=HELLO)
    assert got.status == 503
    assert int(got.headers["retry-after"]) >= 1
    assert "No node can answer for 'coder': a is down" in message(got.json)
    assert it.traces(1)[0]["outcome"] == "refused"


def test_a_node_that_comes_back_is_noticed_and_used_again(loopback):
    it = loopback(1)
    it.nodes[0].set(refuse=True)
    it.open()
    assert it.chat().status == 503
    it.nodes[0].heal()
    it.until(lambda s: s["nodes"]["a"]["breaker"] != "open")
    assert it.chat().status == 200
    first = it.nodes[0].seen[0].path
    assert first == "/api/version", "a probe loads no model; once it is up, its model may be loaded"


def test_traffic_comes_back_with_one_request_first(loopback):
    it = loopback(1, decode=20, slots=4)
    it.nodes[0].set(refuse=True)
    it.open(slots=4)
    assert it.chat().status == 503
    it.nodes[0].heal()
    it.until(lambda s: s["nodes"]["a"]["breaker"] == "gentle")
    calls = [threading.Thread(target=it.chat) for _ in range(4)]
    for call in calls:
        call.start()
    it.until(lambda s: s["waiting"].get(MODEL) == 3)
    assert it.status["nodes"]["a"]["busy"] == 1
    for call in calls:
        call.join()
    assert it.status["nodes"]["a"]["breaker"] == "closed"


def test_a_node_dies_under_load_and_no_request_that_had_no_byte_is_lost(loopback):
    it = loopback(prefill=400, decode=100)
    it.open()
    got = []

    def ask(number):
        words = [{"role": "user", "content": f"{number} " + "x" * 200}]
        got.append(it.chat(messages=words).lines[-1].get("done"))

    calls = [threading.Thread(target=ask, args=(n,)) for n in range(12)]
    for call in calls:
        call.start()
    it.nodes[0].until(
        lambda n: any(s.outcome == "open" and not s.pieces for s in n.asked("/api/chat"))
    )
    it.nodes[0].set(refuse=True)
    for call in calls:
        call.join()
    lost = [t for t in it.traces(12) if t["outcome"] != "ok"]
    assert all(t["ttft"] for t in lost), "only a reply that had begun may break"
    assert len(got) + len(lost) >= 12


@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"html": True}, {"garbage": True}, {"die": 0}, {"short": 0}]
)
def test_before_the_first_byte_another_node_is_asked(loopback, fault):
    it = loopback()
    it.nodes[0].load(UPSTREAM, 8192)
    it.open()
    it.until(lambda s: s["nodes"]["a"]["resident"])
    it.nodes[0].set(**fault, only="/api/chat")
    stream = "garbage" not in fault
    got = it.chat(stream=stream)
    assert (got.status, got.headers["x-fleet-node"]) == (200, "b")
    (trace,) = it.traces(1)
    assert (trace["retries"], trace["outcome"], trace["node"]) == (1, "ok", "b")
    assert trace["why"]["failed"][0].startswith("a: ")


def test_three_failures_of_five_shut_a_node_off(loopback):
    it = loopback()
    it.nodes[0].load(UPSTREAM, 8192)
    it.open()
    it.until(lambda s: s["nodes"]["a"]["resident"])
    it.nodes[0].set(status=500, only="/api/chat")
    for n in range(3):
        assert it.status["nodes"]["a"]["breaker"] == "closed"
        assert it.chat(messages=[{"role": "user", "content": f"another {n}"}]).status == 200
    assert it.status["nodes"]["a"]["breaker"] == "open"
    assert "500" in it.status["nodes"]["a"]["why"]


def test_an_error_that_every_node_gives_is_passed_on_as_it_is(loopback):
    it = loopback()
    it.open()
    for node in it.nodes:
        node.set(status=500, message="template is wrong", only="/api/chat")
    got = it.chat()
    assert (got.status, got.json) == (500, {"error": "template is wrong"})


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_node_is_waited_for_and_not_shut_off(loopback, status):
    it = loopback(1)
    it.open()
    it.nodes[0].set(
        status=status, message="server busy, maximum pending requests", times=2, only="/api/chat"
    )
    got = it.chat()
    assert got.status == 200
    assert it.status["nodes"]["a"]["breaker"] == "closed"
    assert it.traces(1)[0]["retries"] == 2


def test_a_model_that_is_not_on_one_node_is_asked_for_on_another(loopback):
    it = loopback(1)
    missing = serving(it.node(), "m")._replace(upstream="not-there")
    alone = Model("alone", "alone", (missing,))
    it.open(Model(MODEL, MODEL, (missing, serving(it.nodes[0], "a"))), alone)
    assert it.chat().headers["x-fleet-node"] == "a"
    assert (
        it.chat(model="alone").status >= 400
    )  # where it is not, if the first one was not sent there
    assert "not-there" in it.status["nodes"]["m"]["servings"]["not-there"]["why"]


def test_a_node_that_hangs_is_found_out_and_the_request_goes_elsewhere(loopback):
    it = loopback()
    it.nodes[0].load(UPSTREAM, 8192)
    it.open(look=0.2, connect=0.2)
    it.until(lambda s: s["nodes"]["a"]["resident"])
    it.nodes[0].set(hang=True)
    got = it.chat()
    assert (got.status, got.headers["x-fleet-node"]) == (200, "b")
    assert it.status["nodes"]["a"]["breaker"] == "open"


def test_a_slow_prefill_is_not_taken_for_a_node_that_hangs(loopback):
    it = loopback(load=1.5)
    it.open(look=0.2, connect=0.2)
    it.until(lambda s: all(n["resident"] is not None for n in s["nodes"].values()))
    got = it.chat()
    assert (got.status, got.headers["x-fleet-node"]) == (200, "a")


def test_when_all_nodes_of_a_model_are_down_its_fallbacks_answer(loopback):
    it = loopback(2)
    small = Model("small", "small", (serving(it.nodes[1], "b"),))
    it.nodes[0].set(refuse=True)
    it.open(Model(MODEL, MODEL, (serving(it.nodes[0], "a"),), (small,)), small)
    got = it.chat()
    assert (got.status, got.headers["x-fleet-node"]) == (200, "b")


def test_a_fallback_must_speak_the_same_wire(loopback):
    it = loopback(1)
    hosted = Model("hosted", "hosted", (serving(it.node(kind="vllm"), "v"),))
    it.nodes[0].set(refuse=True)
    it.open(Model(MODEL, MODEL, (serving(it.nodes[0], "a"),), (hosted,)), hosted)
    refused = it.chat()
    assert refused.status == 503
    assert "v does not speak ollama" in refused.json["error"]
    assert it.post("/v1/chat/completions", messages=HELLO).headers["x-fleet-node"] == "v"


def heartbeats(it, path, **body):
    connection = it.connect()
    connection.request("POST", f"/m/{MODEL}{path}", json.dumps({"stream": True, **body}))
    return connection.getresponse()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_during_a_long_prefill_events_have_heartbeats(loopback, path):
    it = loopback(1, load=0.6)
    it.open(heartbeat=0.1)
    said = heartbeats(it, path, messages=HELLO, input="Hi").read().decode()
    pings, _, rest = said.rpartition(": ping\n\n")
    assert pings.count(": ping") >= 1
    assert rest.lstrip().startswith(("data:", "event:"))
    assert " 8" in rest


def test_during_a_long_prefill_lines_of_json_stay_lines_of_json(loopback):
    it = loopback(1, load=0.6)
    it.open(heartbeat=0.1)
    said = heartbeats(it, "/api/chat", messages=HELLO).read().decode()
    lines = [json.loads(line) for line in said.splitlines()]
    assert len(lines) > 10
    assert "".join(line["message"]["content"] for line in lines) == " 1 2 3 4 5 6 7 8"
    assert [line["done"] for line in lines].count(True) == 1


def test_an_error_after_a_heartbeat_is_said_within_the_reply(loopback):
    it = loopback(1)
    it.nodes[0].set(lag=0.4, status=500, message="out of memory", only="/v1/chat")
    it.open(heartbeat=0.1)
    answer = heartbeats(it, "/v1/chat/completions", messages=HELLO)
    assert answer.status == 200
    with pytest.raises(http.client.IncompleteRead) as broken:
        answer.read()
    said = broken.value.partial.decode()
    assert ": ping" in said
    assert json.loads(said.strip().splitlines()[-1].removeprefix("data: "))["error"]["message"]
    assert "[DONE]" not in said


def test_before_it_has_seen_for_itself_it_believes_what_was_measured(loopback):
    it = loopback()
    pace = {"a": 5.0, "b": 100.0}
    it.open(
        speeds={
            speed_key(s.node.endpoint, s.upstream): {"prefill": 500.0, "decode": pace[s.node.name]}
            for s in it.servings()
        }
    )
    assert it.chat().headers["x-fleet-node"] == "b"


def test_a_conversation_stays_where_its_prefix_is(loopback):
    it = loopback(2, prefill=2000)
    it.open()
    talk = {name: [{"role": "system", "content": name * 6000}] for name in ("x", "y")}
    homes = {name: set() for name in talk}
    for turn in range(4):
        for messages in talk.values():
            messages.append({"role": "user", "content": f"turn {turn}"})
        calls = []
        for name, messages in talk.items():
            call = threading.Thread(
                target=lambda n=name, m=list(messages): homes[n].add(
                    it.chat(messages=m, headers={"x-fleet-session": n}).headers["x-fleet-node"]
                )
            )
            call.start()
            calls.append(call)
            time.sleep(0.05)
        for call in calls:
            call.join()
    assert [len(nodes) for nodes in homes.values()] == [1, 1]
    assert homes["x"] != homes["y"]
    last = [seen for node in it.nodes for seen in node.asked("/api/chat")[-1:]]
    assert all(seen.cached > 1000 for seen in last)


def test_a_node_that_has_the_model_loaded_is_preferred(loopback):
    it = loopback(2)
    it.nodes[1].load(UPSTREAM, 8192)
    it.open()
    it.until(lambda s: s["nodes"]["a"]["resident"] == {} and s["nodes"]["b"]["resident"])
    assert it.chat().headers["x-fleet-node"] == "b"
