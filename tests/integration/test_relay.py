from __future__ import annotations

import http.client
import json
import socket
import threading

import pytest

from fleet.domain.fleet import Model
from tests.integration.loopback_relay import HELLO, MODEL, UPSTREAM, LoopbackRelay, serving


@pytest.fixture
def loopback(tmp_path):
    made = []

    def make(nodes=1, **manner):
        made.append(LoopbackRelay(nodes, traces=tmp_path / "traces.jsonl", **manner))
        return made[-1]

    yield make
    for each in made:
        each.close()


STREAMS = [
    ("/api/chat", {"messages": HELLO}),
    ("/api/generate", {"prompt": "Hi"}),
    ("/v1/chat/completions", {"messages": HELLO, "stream": True}),
    ("/v1/completions", {"prompt": "Hi", "stream": True}),
    ("/v1/responses", {"input": "Hi", "stream": True}),
    ("/v1/messages", {"messages": HELLO, "stream": True, "max_tokens": 4}),
]


@pytest.mark.parametrize(("path", "body"), STREAMS)
def test_every_wire_passes_through_as_the_node_said_it(loopback, path, body):
    it = loopback().open()
    streamed = it.post(path, **body)
    whole = it.post(path, **{**body, "stream": False})
    assert (streamed.status, whole.status) == (200, 200)
    assert " 4" in streamed.text
    assert " 4" in json.dumps(whole.json)
    assert UPSTREAM in streamed.text or path == "/v1/messages"
    assert streamed.headers["x-fleet-node"] == "a"
    assert [t["outcome"] for t in it.traces(2)] == ["ok", "ok"]


def test_a_node_gets_its_own_name_of_the_model_and_always_the_same_context(loopback):
    it = loopback().open()
    it.chat(options={"num_ctx": 2048, "temperature": 0.5})
    it.chat(model="coder")
    one, two = it.nodes[0].asked("/api/chat")
    assert one.body["model"] == two.body["model"] == UPSTREAM
    assert one.body["options"] == {"num_ctx": 8192, "temperature": 0.5}
    assert two.body["options"] == {"num_ctx": 8192}
    assert one.body["keep_alive"] == two.body["keep_alive"] == -1


def test_a_model_is_known_by_all_its_names_also_odd_ones(loopback):
    it = loopback()
    model = Model("qwen/coder:7b", "claude-sonnet-local", it.servings(), also=("big",))
    it.open(model)
    assert it.chat(model="qwen%2Fcoder%3A7b").status == 200
    assert it.chat(model="claude-sonnet-local").status == 200
    assert it.chat(model="big").status == 200
    unknown = it.chat(model="none")
    assert unknown.status == 404
    assert "There is no model 'none'" in unknown.json["error"]


def test_a_key_goes_to_its_node_and_nowhere_else(loopback, monkeypatch, tmp_path):
    monkeypatch.setenv("RELAY_TEST_KEY", "sk-secret")
    it = loopback()
    node = it.node(kind="vllm", key="sk-secret")
    own = serving(node, "v", key="os.environ/RELAY_TEST_KEY")
    it.open(Model(MODEL, MODEL, (own,)))
    headers = {"authorization": "Bearer sk-of-the-gateway"}
    assert it.post("/v1/chat/completions", messages=HELLO, headers=headers).status == 200
    assert node.asked("/v1/chat/completions")[0].headers["authorization"] == "Bearer sk-secret"
    it.traces(1)
    assert "sk-" not in (tmp_path / "traces.jsonl").read_text() + json.dumps(it.status)


def test_without_a_key_that_it_needs_a_node_is_passed_over(loopback):
    it = loopback(1)
    keyless = serving(it.node(), "k", key="os.environ/NOT_SET_ANYWHERE")
    it.open(Model(MODEL, MODEL, (keyless, serving(it.nodes[0], "a"))))
    assert it.chat().headers["x-fleet-node"] == "a"


def test_four_calls_to_a_node_with_one_slot_are_all_answered_one_by_one(loopback):
    it = loopback(decode=100, slots=4).open()
    got = it.chats(4)
    assert [g.status for g in got] == [200] * 4
    assert all(g.lines[-1]["done"] for g in got)
    assert it.nodes[0].most == 1


def test_a_node_has_a_total_over_all_its_models(loopback):
    it = loopback()
    node = it.node(decode=100, slots=4)
    one = serving(node, "a", slots=4, total=2)
    other = one._replace(upstream=UPSTREAM)
    it.open(Model("one", "one", (one,)), Model("two", "two", (other,)))
    results = []
    calls = [
        threading.Thread(target=lambda name=name: results.append(it.chat(model=name).status))
        for name in ("one", "two") * 3
    ]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert results == [200] * 6
    assert node.most == 2


def test_those_with_priority_go_first_and_the_others_in_their_order(loopback):
    it = loopback(decode=40, output=12).open(priorities={"planner": -1})
    order = []

    def ask(agent):
        it.chat(headers={"x-fleet-agent": agent})
        order.append(agent)

    calls = []
    for agent, waiting in (("first", 0), ("second", 1), ("third", 2), ("planner", 3)):
        calls.append(threading.Thread(target=ask, args=(agent,)))
        calls[-1].start()
        it.until(lambda s, n=waiting: s["active"] == n + 1 and s["waiting"].get(MODEL, 0) == n)
    for call in calls:
        call.join()
    assert order == ["first", "planner", "second", "third"]


def test_a_client_that_leaves_the_line_is_not_waited_for(loopback):
    it = loopback(decode=5).open()
    busy = it.connect()
    busy.request("POST", f"/m/{MODEL}/api/chat", json.dumps({"messages": HELLO}))
    it.until(lambda s: s["nodes"]["a"]["busy"] == 1)
    with pytest.raises(TimeoutError):
        it.chat(timeout=0.3)
    it.until(lambda s: s["waiting"] == {})
    busy.close()
    it.until(lambda s: s["active"] == 0)
    assert len(it.nodes[0].asked("/api/chat")) == 1
    assert [t["outcome"] for t in it.traces(2)] == ["cancelled", "cancelled"]


def test_when_the_client_leaves_the_node_is_told_at_once_and_the_slot_is_free(loopback):
    it = loopback(decode=4, output=400).open()
    connection = it.connect()
    connection.request("POST", f"/m/{MODEL}/api/chat", json.dumps({"messages": HELLO}))
    answer = connection.getresponse()
    answer.readline()
    answer.close()
    connection.close()
    it.nodes[0].until(lambda n: n.seen and n.asked("/api/chat")[0].outcome == "left")
    it.until(lambda s: s["nodes"]["a"]["busy"] == 0)
    assert it.traces(1)[0]["outcome"] == "cancelled"


def test_when_the_client_of_a_whole_reply_leaves_the_node_is_told_too(loopback):
    it = loopback(decode=4, output=400).open()
    with pytest.raises(TimeoutError):
        it.chat(stream=False, timeout=0.3)
    it.nodes[0].until(lambda n: n.asked("/api/chat")[0].outcome == "left")
    it.until(lambda s: s["nodes"]["a"]["busy"] == 0)


def test_the_agent_is_named_by_the_address_or_by_a_header(loopback):
    it = loopback().open()
    body = {"messages": HELLO}
    headers = {"x-fleet-agent": "reviewer"}
    assert it.ask("POST", "/a/the%2Fplanner/m/coder/api/chat", body, headers).status == 200
    it.chat(headers=headers)
    it.chat(headers={"x-claude-code-agent-id": "sub-1"})
    assert [t["agent"] for t in it.traces(3)] == ["the/planner", "reviewer", "sub-1"]
    assert it.ask("POST", "/a/x/m/coder", body).status == 404
    assert it.ask("POST", "/m/coder", body).status == 404
    assert it.ask("POST", "/a/x/api/chat", body).status == 404


def test_a_stream_that_breaks_is_reported_as_broken_and_not_retried(loopback):
    it = loopback(2).open()
    for node in it.nodes:  # either may be asked
        node.set(die=2)
    connection = it.connect()
    connection.request("POST", f"/m/{MODEL}/api/chat", json.dumps({"messages": HELLO}))
    answer = connection.getresponse()
    with pytest.raises(http.client.IncompleteRead) as broken:
        answer.read()
    last = json.loads(broken.value.partial.splitlines()[-1])
    assert "broke off in the middle of its reply" in last["error"]
    assert len([*it.nodes[0].asked("/api/chat"), *it.nodes[1].asked("/api/chat")]) == 1
    assert it.traces(1)[0]["outcome"] == "failed"


def test_the_error_of_a_stream_that_breaks_within_a_line_has_a_line_of_its_own(loopback):
    """And no message: LiteLLM would take it for a piece of the reply."""
    it = loopback(1).open()
    piece = {"message": {"role": "assistant", "content": "one"}, "done": False}
    it.nodes[0].set(events=json.dumps(piece) + '\n{"message": {"ro', only="/api/chat")
    with pytest.raises(http.client.IncompleteRead) as broken:
        it.post("/api/chat", messages=HELLO)
    last = json.loads(broken.value.partial.splitlines()[-1])
    assert "broke off in the middle of its reply" in last["error"]
    assert "message" not in last


@pytest.mark.parametrize(("path", "body"), STREAMS)
def test_a_stream_without_its_end_marker_is_not_taken_as_done(loopback, path, body):
    it = loopback(1).open()
    it.nodes[0].set(short=2)
    with pytest.raises(http.client.IncompleteRead) as broken:
        it.post(path, **body)
    said = broken.value.partial.decode()
    assert "broke off in the middle of its reply" in said
    assert ('"error"' in said) or ("response.failed" in said)
    assert it.traces(1)[0]["outcome"] == "failed"


@pytest.mark.parametrize("manner", [{"idle": 0.15}, {"stale": True}])
def test_a_connection_that_the_node_has_closed_meanwhile_costs_nothing(loopback, manner):
    it = loopback(**manner).open()
    for _ in range(3):
        assert it.chat().lines[-1]["done"]
        it.nodes[0].until(lambda n: n.manner.stale or not n._open)
    assert it.status["nodes"]["a"]["breaker"] == "closed"
    assert [t["retries"] for t in it.traces(3)] == [0, 0, 0]


def test_the_relay_answers_only_programs_here(loopback):
    it = loopback().open()
    assert it.ask("GET", "/relay/status", None, {"host": "evil.example"}).status == 403
    assert it.ask("GET", "/relay/status", None, {"origin": "http://localhost"}).status == 403
    assert it.get("/relay/health").json["ok"] is True


def test_what_is_not_json_is_refused_and_unknown_paths_are_not_passed_on(loopback):
    it = loopback().open()
    with socket.create_connection(("127.0.0.1", it.port), 5) as raw:
        head = f"POST /m/{MODEL}/api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n"
        raw.sendall(head.encode() + b"{x}")
        assert b"400" in raw.recv(100)
    assert it.post("/api/delete", name=UPSTREAM).status == 404
    assert it.nodes[0].asked("/api/delete") == []


def test_what_is_asked_besides_needs_no_slot(loopback):
    it = loopback(decode=5).open()
    busy = it.connect()
    busy.request("POST", f"/m/{MODEL}/api/chat", json.dumps({"messages": HELLO}))
    it.until(lambda s: s["nodes"]["a"]["busy"] == 1)
    assert it.post("/api/show").json["capabilities"] == ["completion", "tools"]
    assert it.get(f"/m/{MODEL}/v1/models").json["data"][0]["id"] == MODEL
    counted = it.post(
        "/v1/messages/count_tokens", messages=[{"role": "user", "content": "x" * 400}]
    )
    assert counted.json["input_tokens"] > 90
    busy.close()


def test_embeddings_pass_through(loopback):
    it = loopback().open()
    got = it.post("/v1/embeddings", input=["one", "two"])
    assert len(got.json["data"]) == 2


def test_a_bad_request_is_the_clients_and_not_the_nodes_fault(loopback):
    it = loopback(2).open()
    for node in it.nodes:  # either may be asked
        node.set(status=400, message="qwen does not support thinking", only="/api/chat")
    for _ in range(6):
        got = it.chat()
        assert (got.status, got.json["error"]) == (400, "qwen does not support thinking")
    assert sum(len(node.asked("/api/chat")) for node in it.nodes) == 6
    assert [node["breaker"] for node in it.status["nodes"].values()] == ["closed", "closed"]


def test_a_trace_says_everything_but_the_words(loopback, tmp_path):
    it = loopback(prefill=1000, decode=500).open()
    secret = "the secret of the tower " * 20
    headers = {"x-fleet-agent": "planner", "x-claude-code-session-id": "s-1"}
    it.chat(messages=[{"role": "user", "content": secret}], headers=headers)
    (trace,) = it.traces(1)
    wanted = {"agent": "planner", "session": "s-1", "model": MODEL, "node": "a", "wire": "chat"}
    wanted |= {"upstream": UPSTREAM, "outcome": "ok", "status": 200, "retries": 0}
    assert {key: trace[key] for key in wanted} == wanted
    assert trace["prompt_tokens"] > 100
    assert trace["output_tokens"] == 8
    assert trace["total"] >= trace["ttft"] > 0
    assert trace["why"]["estimates"][0]["node"] == "a"
    assert "tower" not in (tmp_path / "traces.jsonl").read_text()
    assert (tmp_path / "traces.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_request_that_no_node_answered_is_in_the_traces_before_its_client_hears_of_it(
    loopback, tmp_path
):
    """A program that fails on it may end at once, and the supervisor then looks for whose fault it was."""
    it = loopback(1).open()
    it.nodes[0].set(refuse=True)
    assert it.chat().status == 503
    lines = (tmp_path / "traces.jsonl").read_text().splitlines()
    assert [json.loads(line)["status"] for line in lines] == [503]
