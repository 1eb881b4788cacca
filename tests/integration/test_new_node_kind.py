"""A row in the table of node kinds is all that pulses, survey, relay and benchmark need."""

from __future__ import annotations

import pytest

from fleet.adapters.nodes.benchmark import Meter
from fleet.adapters.nodes.pulse import look
from fleet.adapters.nodes.survey import detect, make_backend
from fleet.domain.fleet import Node, Serving
from fleet.domain.nodes.kinds import KINDS, NodeKind, Pages
from fleet.testing.fake_node.node import FakeModel, FakeNode
from tests.integration.loopback_relay import HELLO, LoopbackRelay

TURBO = NodeKind(
    wires=("openai", "anthropic"),
    health="/livez",
    pages=Pages(version="/about", metrics="/stats", running="turbo:busy", queued="turbo:queue"),
    owner="turbo-inc",
    exact=True,
    always_resident=True,
    key_header="x-turbo-key",
)


@pytest.fixture
def turbo(monkeypatch):
    monkeypatch.setitem(KINDS, "turbo", TURBO)
    with FakeNode([FakeModel("small", context=4096)], kind="turbo", version="7.1") as node:
        yield node


def test_its_pulse_is_felt_at_its_health_page(turbo):
    assert look(turbo.url, "turbo").up
    assert [seen.path for seen in turbo.seen] == ["/livez"]


def test_it_is_found_out_by_asking(turbo):
    assert detect(turbo.url, within=20.0) == "turbo"


def test_its_inventory_has_all_that_its_pages_say(turbo):
    found = make_backend("turbo", turbo.url).look(within=20.0)
    assert (found.kind, found.version, found.busy, found.waiting) == ("turbo", "7.1", 0, 0)
    assert [model.name for model in found.resident] == ["small"]


def test_the_relay_looks_at_its_health_page_and_sends_it_the_formats_that_it_speaks(turbo):
    relay = LoopbackRelay(kind="turbo")
    try:
        relay.open()
        answers = [
            relay.post(path, messages=HELLO, max_tokens=4).status
            for path in ("/v1/chat/completions", "/v1/messages", "/api/chat")
        ]
        assert (answers[:2], answers[2] >= 400) == ([200, 200], True)
        assert relay.nodes[0].asked("/livez")
    finally:
        relay.close()


def test_the_benchmark_has_it_write_to_the_last_token(turbo):
    meter = Meter("turbo", turbo.url, {}, make_backend("turbo", turbo.url))
    serving = Serving(Node("rack", "turbo", turbo.url), "small", 4096, 20.0, 1)
    meter.ask(serving, "Count.", 4)
    assert turbo.seen[-1].path == "/v1/chat/completions"
    assert turbo.seen[-1].body["ignore_eos"] is True
