"""Replies of stand-in nodes, put together as a conversation needs them."""

from __future__ import annotations

import pytest

from fleet.adapters.evals.speak import Prices, Speaker
from fleet.domain.errors import Unavailable
from fleet.domain.nodes.kinds import KINDS
from fleet.testing.fake_node.node import FakeNode

MODEL = "qwen2.5-coder:7b"
ASKED = [{"role": "user", "content": "Hello?"}]
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}


@pytest.fixture(params=["ollama", "vllm"])
def node(request):
    with FakeNode([MODEL], kind=request.param) as made:
        yield made


def speaker(node, **more):
    return Speaker(KINDS[node.kind], node.url, {}, MODEL, context=4096, timeout=10, **more)


def test_a_reply_is_put_together_with_its_pieces_and_tokens(node):
    node.set(reply=lambda _body: "one two\nthree")
    reply = speaker(node).ask(ASKED, 50)
    assert (reply.text, reply.pieces, reply.output_tokens) == ("one two\nthree", 3, 3)
    assert 0 < reply.first <= reply.seconds
    assert reply.prompt_tokens > 0
    assert reply.cost == 0.0


def test_a_tool_call_is_read_and_answered_as_each_wire_wants_it(node):
    arguments = {"build": 7, "why": 'a "quote"'}
    node.set(reply=lambda _body: {"name": "read", "arguments": arguments})
    asked = speaker(node)
    reply = asked.ask(ASKED, 50, [TOOL])
    assert reply.calls == (("read", arguments),)
    node.set(reply=lambda _body: "done")
    asked.ask([*ASKED, *asked.call_and_result(reply, '{"ok": 1}')], 50, [TOOL])
    path = "/api/chat" if node.kind == "ollama" else "/v1/chat/completions"
    _, call, result = node.asked(path)[-1].body["messages"]
    assert call["tool_calls"][0]["function"]["name"] == "read"
    assert result["content"] == '{"ok": 1}'
    key = "tool_name" if node.kind == "ollama" else "tool_call_id"
    assert result[key] == ("read" if node.kind == "ollama" else call["tool_calls"][0]["id"])


@pytest.mark.parametrize("fault", [{"die": 2}, {"short": 2}, {"status": 500}, {"refuse": True}])
def test_half_a_reply_is_none(node, fault):
    node.set(**fault)
    with pytest.raises(Unavailable):
        speaker(node).ask(ASKED, 50)


def test_what_is_billed_costs_its_price_or_is_not_known():
    with FakeNode([MODEL], kind="vllm") as node:
        billed = speaker(node, is_billed=True)
        assert billed.ask(ASKED, 50).cost is None
        billed.prices = Prices(0.5, 2.0)
        reply = billed.ask(ASKED, 50)
        assert reply.cost == reply.prompt_tokens * 0.5 + reply.output_tokens * 2.0
