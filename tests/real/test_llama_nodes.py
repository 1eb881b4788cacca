"""A real llama.cpp server as a node: found out, asked, warmed, and seen at work."""

from __future__ import annotations

import json
import threading
import time
import urllib.request

import pytest

from fleet.adapters.nodes.survey import Prober, detect, make_backend
from fleet.domain.fleet import Node
from tests.real.llama_server import NAME, LlamaServer

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def server():
    with LlamaServer(slots=2, context=4096) as node:
        yield node


def test_it_is_known_as_llamacpp_though_nobody_wrote_so(server, tmp_path):
    assert detect(server.url, within=10) == "llamacpp"
    node = Node("real", "ollama", server.url)
    (seen,) = Prober({}, tmp_path, {"real"}).survey([node], within=10)
    assert (seen.up, seen.inventory.kind) == (True, "llamacpp")


def test_it_says_its_model_its_slots_and_the_context_of_each(server):
    found = make_backend("llamacpp", server.url).look(within=10)
    assert [held.name for held in found.held] == [NAME]
    assert found.held[0].size > 50_000_000
    assert (found.busy, found.slots, found.resident[0].context) == (0, 2, 2048)


def test_it_is_warm_as_soon_as_it_is_well(server):
    found = make_backend("llamacpp", server.url).load(NAME, context=2048, within=60)
    assert (found.name, found.context) == (NAME, 2048)


def test_a_request_at_work_is_a_busy_slot(server):
    body = {"prompt": "Count to a thousand:", "n_predict": 200, "ignore_eos": True}
    request = urllib.request.Request(f"{server.url}/completion", json.dumps(body).encode())
    work = threading.Thread(target=lambda: urllib.request.urlopen(request, timeout=60).read())
    work.start()
    busy = 0
    while work.is_alive() and not busy:
        busy = make_backend("llamacpp", server.url).look(within=10).busy
        time.sleep(0.05)
    work.join()
    assert busy == 1
