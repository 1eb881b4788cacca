"""A body comes through the relay as it was sent, whatever JSON it is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fleet.adapters.relay.connections import why_of
from fleet.adapters.relay.request import body_for, decode, read_request, unread
from fleet.adapters.relay.wires import WIRES
from fleet.domain.fleet import Node, Serving

SERVING = Serving(Node("mini", "vllm", "http://mini"), "qwen:7b", 32_768, 60, 1)
PATH = "/v1/chat/completions"
BODIES = [
    '{"messages": [{"role": "user", "content": "Ünï \\" \\n 😀"}], "temperature": 0.25}',
    '{"seed": 123456789012345678901234567890, "messages": []}',
    '{"top_p": NaN, "messages": []}',
    '{"messages": [{"content": "a", "content": "b"}], "n": 1e3, "stop": null, "stream": true}',
]


@pytest.mark.parametrize("text", BODIES)
def test_a_body_is_read_as_any_reader_of_json_reads_it(text):
    assert repr(decode(text.encode())) == repr(json.loads(text))


@pytest.mark.parametrize("text", [BODIES[0], BODIES[1], BODIES[3]])
def test_a_body_is_sent_on_with_nothing_changed_but_the_name_of_the_model(text):
    body = decode(text.encode())
    request = read_request("coder", PATH, WIRES[PATH], body, {})
    assert json.loads(body_for(SERVING, request)) == json.loads(text) | {"model": "qwen:7b"}


@pytest.mark.parametrize("text", [BODIES[0], BODIES[1], BODIES[3]])
def test_a_large_body_is_kept_as_it_came_and_sent_on_with_nothing_else_changed(text):
    text = text[:-1] + ', "options": {"num_predict": 7}}'
    raw = bytearray(text.encode())
    body = unread(raw, decode(raw))
    assert not any(isinstance(body[key], list | str) for key in body)
    request = read_request("coder", "/api/chat", WIRES["/api/chat"], decode(raw), {})
    sent = json.loads(body_for(SERVING, replace(request, body=body)))
    options = {"num_predict": 7, "num_ctx": 32_768}
    assert sent == json.loads(text) | {"model": "qwen:7b", "options": options, "keep_alive": -1}


def test_a_large_body_that_only_the_slow_reader_takes_is_kept_as_objects():
    raw = bytearray(BODIES[2].encode())
    assert unread(raw, decode(raw))["messages"] == []


def test_a_body_with_half_a_character_is_sent_on_without_it():
    body = decode(rb'{"messages": [{"role": "user", "content": "cut \ud83d"}]}')
    request = read_request("coder", PATH, WIRES[PATH], body, {})
    assert json.loads(body_for(SERVING, request))["messages"][0]["content"] == "cut ?"


@pytest.mark.parametrize("text", ["", "{", "[1,", '{"a": }', "\xff"])
def test_what_is_not_json_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        decode(text.encode("latin-1"))


def test_a_request_says_which_run_it_belongs_to():
    request = read_request("coder", PATH, WIRES[PATH], {}, {"x-fleet-run": "t-3.1"})
    assert request.run == "t-3.1"


def test_a_name_that_nobody_knows_is_called_that():
    import socket
    from types import SimpleNamespace

    from aiohttp import ClientConnectorDNSError

    key = SimpleNamespace(host="no-such-host.invalid", port=80, ssl=False, is_ssl=False)
    error = ClientConnectorDNSError(key, socket.gaierror(-2, "Name or service not known"))
    assert why_of(error) == "there is no host named no-such-host.invalid"
