from __future__ import annotations

import json

from fleet.adapters.relay.wires import WIRES, ReplyReader, ReplyTimes, timing, tokens
from fleet.domain.nodes.trace import TokenCounts

# As Ollama 0.33 ends a stream; older ones leave out the count of cached tokens.
# https://github.com/ollama/ollama/issues/16714, https://github.com/stdapi-ai/stdapi.ai/issues/252
END = {
    "message": {"role": "assistant", "content": ""},
    "done": True,
    "done_reason": "stop",
    "load_duration": 0,
    "prompt_eval_count": 20_000,
    "prompt_eval_cached_count": 19_900,
    "prompt_eval_duration": 200_000_000,
    "eval_count": 3,
    "eval_duration": 100_000_000,
}
GUESS = TokenCounts(20_000, cached=500)


def read(end) -> ReplyReader:
    reader = ReplyReader(WIRES["/api/chat"])
    reader.feed(json.dumps(end).encode() + b"\n")
    return reader


def test_what_ollama_says_of_its_cache_is_believed():
    reader = read(END)
    assert tokens(reader.counts) == TokenCounts(20_000, 3, 19_900)
    measured = timing(reader, ReplyTimes(0.2, 0.1), GUESS)
    assert (measured.read, measured.uncached) == (100, 0)
    cold = timing(read(END | {"prompt_eval_cached_count": 0}), ReplyTimes(0.2, 0.1), GUESS)
    assert cold.read == 20_000


def test_what_an_older_ollama_leaves_out_is_guessed():
    older = {key: value for key, value in END.items() if "cached" not in key}
    measured = timing(read(older), ReplyTimes(0.2, 0.1), GUESS)
    assert (measured.read, measured.uncached) == (19_500, 20_000)


def test_a_client_knows_by_the_error_what_to_do():
    openai, anthropic = WIRES["/v1/chat/completions"], WIRES["/v1/messages"]
    error = openai.error("prompt is too long", 400, "context_length_exceeded")["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "context_length_exceeded")
    assert openai.error("no node", 503)["error"]["type"] == "server_error"
    kinds = {s: anthropic.error("", s)["error"]["type"] for s in (400, 404, 502, 503)}
    assert kinds == {
        400: "invalid_request_error",
        404: "not_found_error",
        502: "api_error",
        503: "overloaded_error",
    }
