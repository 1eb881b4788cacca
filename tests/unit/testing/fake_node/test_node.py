from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from urllib.request import Request, urlopen

import pytest

from fleet.testing.fake_node.node import FakeModel, FakeNode
from tests.wait import LIMIT, until

MODEL = "qwen2.5-coder:7b"


def get(url):
    with urlopen(url, timeout=LIMIT) as answer:
        return json.load(answer)


def post(url, body, timeout=LIMIT):
    data = json.dumps(body).encode()
    with urlopen(Request(url, data, {"content-type": "application/json"}), timeout=timeout) as got:
        return got.read()


def chat(node, **more):
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello there"}], **more}
    return post(f"{node.url}/api/chat", body)


@pytest.fixture
def node():
    with FakeNode([MODEL]) as made:
        yield made


def test_it_answers_as_ollama_does(node):
    assert get(f"{node.url}/api/version") == {"version": "0.14.2"}
    assert [m["name"] for m in get(f"{node.url}/api/tags")["models"]] == [MODEL]
    assert get(f"{node.url}/api/ps") == {"models": []}
    lines = [json.loads(line) for line in chat(node, options={"num_ctx": 8192}).splitlines()]
    assert [line["done"] for line in lines] == [False] * 8 + [True]
    assert "".join(line["message"]["content"] for line in lines) == " 1 2 3 4 5 6 7 8"
    assert lines[-1]["eval_count"] == 8
    assert get(f"{node.url}/api/ps")["models"][0]["context_length"] == 8192
    shown = json.loads(post(f"{node.url}/api/show", {"model": MODEL}))
    assert shown["capabilities"] == ["completion", "tools"]


@pytest.mark.parametrize(
    ("path", "body", "end"),
    [
        ("/api/generate", {"prompt": "Hi", "stream": True}, b'"done": true'),
        ("/v1/chat/completions", {"messages": [], "stream": True}, b"data: [DONE]"),
        ("/v1/completions", {"prompt": "Hi", "stream": True}, b"data: [DONE]"),
        ("/v1/responses", {"input": "Hi", "stream": True}, b'"type": "response.completed"'),
        ("/v1/messages", {"messages": [], "stream": True}, b'"type": "message_stop"'),
    ],
)
def test_a_stream_of_each_wire_ends_with_its_marker(node, path, body, end):
    said = post(f"{node.url}{path}", {"model": MODEL, **body})
    assert end in said.strip().splitlines()[-1]
    whole = json.loads(post(f"{node.url}{path}", {"model": MODEL, **body, "stream": False}))
    assert " 7 8" in json.dumps(whole)


def test_a_tool_that_is_offered_is_called_once(node):
    node.set(calls=True)
    tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
    asked = {"model": MODEL, "tools": [tool], "messages": [{"role": "user", "content": "Go"}]}
    url = f"{node.url}/v1/chat/completions"
    said = json.loads(post(url, asked))["choices"][0]
    assert said["finish_reason"] == "tool_calls"
    assert said["message"]["tool_calls"][0]["function"]["name"] == "look"
    asked["messages"].append({"role": "tool", "tool_call_id": "call_1", "content": "seen"})
    assert json.loads(post(url, asked))["choices"][0]["finish_reason"] == "stop"


def test_it_remembers_what_it_was_sent_and_says_so(node):
    chat(node, keep_alive=-1)
    (seen,) = get(f"{node.url}/seen")
    assert (seen["path"], seen["body"]["keep_alive"]) == ("/api/chat", -1)
    assert seen["outcome"] == "answered"
    assert seen["headers"]["content-type"] == "application/json"


def test_a_prefix_that_was_read_is_not_read_again(node):
    first = [{"role": "user", "content": "x" * 4000}]
    chat(node, messages=first)
    chat(node, messages=[*first, {"role": "user", "content": "more"}])
    one, two = node.asked("/api/chat")
    assert one.cached == 0
    assert two.cached > 1000


def test_another_context_size_loads_the_model_again(node):
    node.set(load=0.05)
    took = [
        json.loads(chat(node, stream=False, options={"num_ctx": size}))["load_duration"]
        for size in (4096, 4096, 8192)
    ]
    assert [bool(seconds) for seconds in took] == [True, False, True]


def test_speeds_are_kept(node):
    node.set(prefill=1000, decode=200, output=20)
    begun = time.monotonic()
    chat(node, messages=[{"role": "user", "content": "y" * 800}])
    assert time.monotonic() - begun >= 0.2 + 0.1


def test_a_node_with_one_slot_does_one_thing_at_a_time(node):
    node.set(decode=100)
    import threading

    calls = [threading.Thread(target=chat, args=(node,)) for _ in range(3)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert node.most == 1
    assert len(node.asked("/api/chat")) == 3


def test_a_node_that_is_down_refuses_and_can_come_back(node):
    chat(node)
    node.set(refuse=True)
    with pytest.raises(OSError, match="refused"):
        chat(node)
    node.heal()
    assert chat(node)


def test_a_node_without_power_says_nothing_at_all(node):
    node.set(drop=True)
    with pytest.raises(TimeoutError):
        socket.create_connection(("127.0.0.1", node.port), timeout=0.3)
    node.heal()
    assert chat(node)


FAULTS = {
    "hang": ({"hang": True}, TimeoutError),
    "drip": ({"drip": 1.0}, TimeoutError),
    "die": ({"die": 2}, http.client.IncompleteRead),
    "status": ({"status": 500}, OSError),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_fails_as_told(node, fault):
    manner, error = FAULTS[fault]
    node.set(**manner)
    with pytest.raises((error, ConnectionError)):
        post(f"{node.url}/api/chat", {"model": MODEL, "messages": [{}]}, timeout=0.5)
    node.heal()
    assert chat(node)


def test_it_can_end_a_stream_without_its_end_and_speak_no_json(node):
    node.set(short=2)
    assert b'"done": true' not in chat(node)
    node.heal()
    node.set(html=True, only="/api/tags", times=1)
    with urlopen(f"{node.url}/api/tags", timeout=LIMIT) as answer:
        assert answer.headers["content-type"] == "text/html"
    node.set(garbage=True, times=None)
    with pytest.raises(ValueError):
        get(f"{node.url}/api/tags")
    assert get(f"{node.url}/api/version")


def test_faults_are_set_over_http(node):
    post(f"{node.url}/fault", {"status": 503})
    node.until(lambda it: it.manner.status == 503)
    with pytest.raises(OSError, match="503"):
        chat(node)
    with urlopen(Request(f"{node.url}/fault", method="DELETE"), timeout=LIMIT):
        pass
    node.until(lambda it: it.manner.status == 0)
    assert chat(node)


def test_a_client_that_leaves_is_noticed(node):
    node.set(decode=1, output=100)
    with pytest.raises(TimeoutError):
        post(f"{node.url}/api/chat", {"model": MODEL, "messages": [{}]}, timeout=0.2)
    node.until(lambda it: it.seen[0].outcome == "left")
    node.until(lambda it: it.busy == 0)


@pytest.mark.parametrize(
    ("kind", "path", "words"),
    [
        ("llamacpp", "/slots", "is_processing"),
        ("llamacpp", "/props", "n_ctx"),
        ("vllm", "/v1/models", "max_model_len"),
        ("lmstudio", "/api/v0/models", "max_context_length"),
    ],
)
def test_it_can_be_another_kind_of_server(kind, path, words):
    with FakeNode([FakeModel("small", context=4096)], kind=kind) as node:
        assert words in json.dumps(get(f"{node.url}{path}"))
        with pytest.raises(OSError, match="404"):
            get(f"{node.url}/api/tags")


def test_a_key_is_asked_for():
    with FakeNode(kind="openai", key="sk-x") as node:
        with pytest.raises(OSError, match="401"):
            get(f"{node.url}/v1/models")
        asked = Request(f"{node.url}/v1/models", headers={"authorization": "Bearer sk-x"})
        with urlopen(asked, timeout=LIMIT) as answer:
            assert answer.status == 200


def test_it_is_a_program(tmp_path):
    ready = tmp_path / "url"
    argv = [sys.executable, "-m", "fleet.testing.fake_node.node", "--ready", str(ready)]
    program = subprocess.Popen([*argv, "--model", "tiny", "--slots", "3"])
    try:
        url = until(ready.read_text, errors=(FileNotFoundError,))
        assert get(f"{url}/api/tags")["models"][0]["name"] == "tiny:latest"
    finally:
        program.terminate()
        program.wait(LIMIT)
