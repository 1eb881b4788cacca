"""What nobody should send, and what nobody should answer."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from fleet.adapters.relay.plan import plan_of, relay_config
from fleet.adapters.relay.wires import (
    WIRES,
    ReplyReader,
    ReplyTimes,
    TokenCounts,
    cost,
    error_of,
    timing,
    tokens,
)
from fleet.domain.fleet import Model
from fleet.domain.nodes.breaker import NodeResult
from tests.integration.loopback_relay import (
    HELLO,
    MODEL,
    UPSTREAM,
    LoopbackRelay,
    fleet_of,
    serving,
)
from tests.wait import LIMIT


@pytest.fixture
def loopback(tmp_path):
    made = []

    def make(nodes=1, **manner):
        made.append(LoopbackRelay(nodes, traces=tmp_path / "traces.jsonl", **manner))
        return made[-1]

    yield make
    for each in made:
        each.close()


def sent(loopback, text: str, path="/api/chat"):
    """Written as it is, and not as a program in order would."""
    connection = loopback.connect()
    try:
        connection.request("POST", f"/m/{MODEL}{path}", text.encode())
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("/api/chat", '"messages": [{"role": "user", "content": "cut \\ud83d"}]'),
        ("/api/generate", '"prompt": "cut \\ud83d"'),
        ("/v1/chat/completions", '"messages": [], "prompt_cache_key": "\\ud83d"'),
    ],
)
def test_text_that_was_cut_in_the_middle_of_a_sign_is_answered(loopback, path, held):
    it = loopback().open()
    status, _ = sent(it, f'{{"stream": false, {held}}}', path)
    assert status == 200
    assert "\ud83d" not in json.dumps(it.nodes[0].asked(path)[0].body, ensure_ascii=False)
    assert it.traces(1)[0]["outcome"] == "ok"


def test_a_header_of_any_bytes_is_no_reason_to_lose_an_answer(loopback):
    it = loopback().open()
    with socket.create_connection(("127.0.0.1", it.port), timeout=LIMIT) as raw:
        body = json.dumps({"messages": HELLO, "stream": False}).encode()
        head = f"POST /m/{MODEL}/api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        head += f"Content-Length: {len(body)}\r\n"
        named = "x-fleet-session: Grüße".encode() + b"\r\nx-fleet-agent: \xff\r\n\r\n"
        raw.sendall(head.encode() + named + body)
        assert raw.makefile("rb").readline().startswith(b"HTTP/1.1 200")
    [trace] = it.traces(1)
    assert (trace["session"], trace["agent"], trace["outcome"]) == ("Grüße", "\ufffd", "ok")


def test_brackets_within_brackets_are_refused_as_no_request(loopback):
    it = loopback().open()
    status, said = sent(it, '{"messages": ' + "[" * 50_000 + "]" * 50_000 + "}")
    assert (status, json.loads(said)) == (400, {"error": "The request is not a JSON object."})


def test_options_that_are_none_are_for_the_node_to_judge(loopback):
    it = loopback(status=400, only="/api/chat").open()  # as Ollama answers to it
    assert it.chat(options="fast", stream=False).status == 400
    assert it.nodes[0].asked("/api/chat")[0].body["options"] == "fast"


def test_a_node_that_sends_elsewhere_is_not_followed_and_another_is_asked(loopback, monkeypatch):
    monkeypatch.setenv("NODE_KEY", "sesame")
    it = loopback(2)
    thief = it.node()
    it.nodes[0].set(location=thief.url)
    it.open(Model(MODEL, MODEL, it.servings(key="os.environ/NODE_KEY")))
    assert [it.chat().headers["x-fleet-node"] for _ in range(3)] == ["b"] * 3
    assert it.chat(stream=False).headers["x-fleet-node"] == "b"
    it.post("/api/show")
    it.until(lambda status: status["nodes"]["a"]["breaker"] == "open")
    assert f"it redirects to {thief.url}" in it.status["nodes"]["a"]["why"]
    assert thief.seen == []


def test_when_the_only_node_sends_elsewhere_the_answer_says_so(loopback):
    it = loopback()
    it.nodes[0].set(location="http://127.0.0.1:9", only="/api/chat")
    got = it.open().chat()
    assert got.status == 503
    assert "a: it redirects to http://127.0.0.1:9/api/chat" in got.json["error"]


def test_a_web_page_where_a_node_was_is_no_node(loopback):
    it = loopback(html=True).open()
    it.until(lambda status: status["nodes"]["a"]["breaker"] == "open")
    assert it.status["nodes"]["a"]["why"] == "it answers with a web page"
    it.nodes[0].heal()
    it.until(lambda status: status["nodes"]["a"]["breaker"] == "gentle")
    assert it.chat().status == 200


def test_what_a_node_is_at_work_on_counts_also_when_its_entry_is_changed(loopback):
    it = loopback(decode=8).open()
    first = threading.Thread(target=it.chat)
    first.start()
    it.nodes[0].until(lambda n: n.busy == 1)
    tagged = serving(it.nodes[0], "a", total=1)
    config = relay_config(fleet_of(Model(MODEL, MODEL, (tagged,))), port=0)
    it._loop.call_soon_threadsafe(it.relay.adopt, plan_of(config))
    assert it.status["nodes"]["a"]["busy"] == 1
    assert it.chat().status == 200
    first.join()
    assert it.nodes[0].most == 1
    assert UPSTREAM in it.status["nodes"]["a"]["servings"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": "model requires more memory"}', "model requires more memory"),
        (b'{"error": {"message": "no credit", "code": 402}}', "no credit"),
        (b'{"object": "error", "message": "too long"}', "too long"),
        (b"<html>", "<html>"),
        (b"[" * 100_000, "[" * 200),
        (b'{"error": null}', '{"error": null}'),
    ],
)
def test_the_words_of_an_error_are_read_out_of_its_json(body, words):
    assert error_of(body) == words


@pytest.mark.parametrize(
    "number", ["1e999", "NaN", "-Infinity", '"9"', "null", "[]", "1" + "0" * 40]
)
def test_a_count_that_is_no_number_is_as_one_that_was_not_said(number):
    ollama, openai = ReplyReader(WIRES["/api/chat"]), ReplyReader(WIRES["/v1/chat/completions"])
    names = ("prompt_eval_count", "eval_count", "eval_duration", "load_duration")
    ollama.read_whole(("{" + ", ".join(f'"{name}": {number}' for name in names) + "}").encode())
    usage = f'"prompt_tokens": {number}, "prompt_tokens_details": {number}, "cost": {number}'
    openai.read_whole(f'{{"usage": {{{usage}}}, "timings": {{"prompt_ms": {number}}}}}'.encode())
    for reader in (ollama, openai):
        assert tokens(reader.counts) == TokenCounts()
        assert timing(reader, ReplyTimes(1.0, 1.0), TokenCounts()).reading == 0
    assert not cost(openai.counts)


def test_a_long_last_line_is_an_end_as_well():
    reader = ReplyReader(WIRES["/v1/responses"])
    said = {"type": "response.completed", "response": {"output": "x" * (3 << 20)}}
    reader.feed(f"event: response.completed\r\ndata: {json.dumps(said)}\r\n\r\n".encode())
    assert reader.done


def test_an_error_of_any_shape_is_one():
    reader = ReplyReader(WIRES["/v1/responses"])
    reader.feed(b'data: {"type": "response.failed", "response": "no"}\n')
    assert reader.failed == "it failed"


@pytest.mark.parametrize("size", ["1e999", '"many"', "[]", "null"])
def test_a_node_that_says_nonsense_of_what_is_loaded_is_still_seen_to_come_back(loopback, size):
    body = f'{{"models": [{{"name": "{UPSTREAM}", "context_length": {size}}}, 7]}}'
    it = loopback(body=body, only="/api/ps").open()
    it.until(lambda status: status["nodes"]["a"]["resident"] == {UPSTREAM: 0})
    it._loop.call_soon_threadsafe(it.relay.world.nodes["a"].note, NodeResult.UNREACHABLE)
    it.until(lambda status: status["nodes"]["a"]["breaker"] == "gentle")
    assert it.chat().status == 200


def test_a_body_of_many_megabytes_is_answered_like_any_other(loopback):
    it = loopback().open()
    words = "x" * 4_000_000
    body = {"stream": False, "messages": [{"role": "user", "images": [words], "content": "Hi"}]}
    status, _ = sent(it, json.dumps(body))
    assert status == 200
    (seen,) = (each for each in it.nodes[0].seen if each.path == "/api/chat")
    assert seen.body["messages"][0]["images"] == [words]
