import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from fleet.testing.model_server import (
    Call,
    ModelServer,
    Reply,
    Say,
    Think,
    Tokens,
    Wait,
    after,
    call,
    fail,
    hang,
    limited,
    read_script,
    say,
)
from tests.wait import LIMIT

TOOL = {
    "/v1/messages": {"name": "look"},
    "/v1/responses": {"type": "function", "name": "look"},
    "/v1/chat/completions": {"type": "function", "function": {"name": "look"}},
}
PATHS = sorted(TOOL)


def post(server, path, body, **headers):
    request = urllib.request.Request(
        server.url + path,
        json.dumps(body).encode(),
        {"content-type": "application/json", **headers},
    )
    with urllib.request.urlopen(request, timeout=LIMIT) as reply:
        return reply.read().decode()


def body(path, text, *, stream=False):
    key = "input" if path.endswith("responses") else "messages"
    turns = [{"role": "user", "content": text}]
    return {"model": "m", "stream": stream, key: turns, "tools": [TOOL[path]]}


def events(text):
    data = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(one) for one in data if one != "[DONE]"]


@pytest.mark.parametrize("path", PATHS)
def test_every_conversation_goes_through_the_script_from_its_start(path):
    with ModelServer([say("One."), say("Two.")]) as server:
        for text in ("First", "Second"):
            assert "One." in post(server, path, body(path, text))
        assert "Two." in post(server, path, body(path, "First"))
        assert "Done." in post(server, path, body(path, "First"))
        assert [asked.number for asked in server.turns] == [0, 0, 1, 2]


@pytest.mark.parametrize("path", PATHS)
def test_what_was_asked_is_kept(path):
    with ModelServer() as server:
        post(server, path, body(path, "Hello"), Authorization="Bearer k")
        (asked,) = server.requests
    assert (asked.path, asked.model, asked.said, asked.tools) == (path, "m", ("Hello",), ("look",))
    assert asked.headers["authorization"] == "Bearer k"


@pytest.mark.parametrize("path", PATHS)
def test_a_streamed_reply_carries_text_thoughts_calls_and_usage(path):
    reply = Reply(
        (Think("hm"), Say("I look."), Call("look", {"at": "it"})),
        Tokens(input=11, output=7, cached=5, written=3),
    )
    asked = body(path, "Hello", stream=True) | {"stream_options": {"include_usage": True}}
    with ModelServer([reply]) as server:
        told = json.dumps(events(post(server, path, asked)))
    assert "hm" in told
    assert '\\"at\\"' in told
    total = {"/v1/messages": ['"input_tokens": 11', '"cache_read_input_tokens": 5']}
    for usage in total.get(path, [" 19,", '"cached_tokens": 5']):
        assert usage in told
    assert '"output_tokens": 7' in told or '"completion_tokens": 7' in told


@pytest.mark.parametrize("path", PATHS)
def test_a_failure_has_its_status_and_says_when_to_come_back(path):
    server = ModelServer([fail(429, "Slow down.", retry_after=3)])
    with server, pytest.raises(urllib.error.HTTPError) as error:
        post(server, path, body(path, "Hello"))
    assert error.value.code == 429
    assert error.value.headers["retry-after"] == "3"
    assert json.loads(error.value.read())["error"]["message"] == "Slow down."


def test_a_subscription_that_is_used_up_says_so_in_headers():
    server = ModelServer([limited(1_900_000_000)])
    with server, pytest.raises(urllib.error.HTTPError) as error:
        post(server, "/v1/messages", body("/v1/messages", "Hello"))
    assert error.value.headers["anthropic-ratelimit-unified-reset"] == "1900000000"


def test_a_reply_may_wait_and_a_hanging_one_ends_with_the_server():
    path = "/v1/chat/completions"
    with ModelServer([after(0.2, say("Late.")), hang()]) as server:
        begun = time.monotonic()
        assert "Late." in post(server, path, body(path, "Hello"))
        assert time.monotonic() - begun >= 0.2
        ended = []
        thread = threading.Thread(target=lambda: ended.append(_failing(server, path)))
        thread.start()
        server.until(lambda asked: asked.number == 1)
        assert not ended
    thread.join(LIMIT)
    assert ended


def _failing(server, path):
    try:
        return post(server, path, body(path, "Hello"))
    except OSError as error:
        return error


def test_several_scripts_are_told_apart_by_what_was_said():
    path = "/v1/messages"
    with ModelServer({"task A": [say("This is A.")], "task B": [say("This is B.")]}) as server:
        assert "This is B." in post(server, path, body(path, "Do task B now"))
        assert "This is A." in post(server, path, body(path, "Do task A now"))


def test_a_request_without_tools_is_answered_beside_the_script():
    path = "/v1/chat/completions"
    with ModelServer([say("From the script.")]) as server:
        bare = body(path, "Name this") | {"tools": []}
        assert "A title" in post(server, path, bare)
        assert "From the script." in post(server, path, body(path, "Name this"))
    with ModelServer([say("From the script.")], aside=None) as server:
        assert "From the script." in post(server, path, bare)


def test_models_and_tokens_can_be_asked_for():
    with ModelServer(model="mine") as server:
        with urllib.request.urlopen(server.url + "/v1/models", timeout=LIMIT) as reply:
            assert json.loads(reply.read())["data"][0]["id"] == "mine"
        counted = post(server, "/v1/messages/count_tokens", body("/v1/messages", "Hello"))
        assert json.loads(counted)["input_tokens"] > 0
        assert server.turns == []


def test_a_script_in_json_reads_as_the_same_replies():
    steps = [
        {"think": "hm", "say": "Hello", "call": {"name": "look", "input": {"at": "it"}}},
        {"fail": 500, "message": "Oops."},
        {"wait": 1, "say": "Late.", "tokens": {"input": 5}},
        {"resets_at": 1_900_000_000},
        {"hang": True},
    ]
    assert read_script(steps) == [
        Reply((Think("hm"), Say("Hello"), Call("look", {"at": "it"}))),
        fail(500, "Oops."),
        after(1, say("Late.", input=5)),
        limited(1_900_000_000),
        hang(),
    ]
    assert read_script({"A": [{"say": "x"}]}) == {"A": [say("x")]}
    with pytest.raises(ValueError, match="'sya' is not part of a step"):
        read_script([{"sya": "x"}])


def test_it_is_a_program_that_prints_its_address(tmp_path):
    script = tmp_path / "script.json"
    script.write_text('[{"say": "Scripted."}]')
    command = [sys.executable, "-m", "fleet.testing.model_server", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            address = program.stdout.readline().strip()
            path = "/v1/messages"
            request = urllib.request.Request(
                address + path, json.dumps(body(path, "Hello")).encode()
            )
            with urllib.request.urlopen(request, timeout=LIMIT) as reply:
                assert b"Scripted." in reply.read()
        finally:
            program.terminate()


def test_a_call_and_a_wait_are_one_reply():
    reply = Reply((Wait(0), *call("look", at="it").parts))
    with ModelServer([reply]) as server:
        told = post(server, "/v1/messages", body("/v1/messages", "Hello", stream=True))
    assert events(told)[-2]["delta"]["stop_reason"] == "tool_use"


GEMINI = "/v1beta/models/m:{}"


def asked_as_gemini(*turns):
    contents = [{"role": role, "parts": [part]} for role, part in turns]
    return {"contents": contents, "tools": [{"functionDeclarations": [{"name": "look"}]}]}


def test_gemini_is_spoken_streamed_and_whole():
    with ModelServer([call("look", at="x"), say("Seen.", input=90, output=3, cached=10)]) as server:
        first = asked_as_gemini(("user", {"text": "Look."}))
        (event, _) = events(post(server, GEMINI.format("streamGenerateContent"), first))
        part = event["candidates"][0]["content"]["parts"][0]
        assert part == {"functionCall": {"name": "look", "args": {"at": "x"}}}
        result = {"functionResponse": {"name": "look", "response": {"output": "A file."}}}
        second = asked_as_gemini(("user", {"text": "Look."}), ("model", part), ("user", result))
        whole = json.loads(post(server, GEMINI.format("generateContent"), second))
        assert whole["candidates"][0]["content"]["parts"] == [{"text": "Seen."}]
        assert whole["usageMetadata"]["promptTokenCount"] == 100
        (one, two) = server.turns
        assert (one.model, one.said, one.tools) == ("m", ("Look.",), ("look",))
        assert two.results == ("A file.",)
        assert json.loads(post(server, GEMINI.format("countTokens"), {})) == {"totalTokens": 100}


def test_gemini_fails_in_its_own_words():
    with ModelServer([fail(429, "Slow down.")]) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(server, GEMINI.format("generateContent"), asked_as_gemini(("user", {"text": "a"})))
        error = json.loads(caught.value.read())["error"]
    assert (error["status"], error["message"]) == ("RESOURCE_EXHAUSTED", "Slow down.")
