"""A repository says where its nodes are: nothing is sent there before `fleet trust`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from tests.e2e.machines import FLEET, Machines
from tests.wait import LIMIT

OUTSIDE = "http://0.0.0.0"  # this machine, by an address that is not a loopback one


@pytest.fixture
def machines(tmp_path):
    made = Machines(tmp_path)
    made.write(FLEET.replace("{laptop}", made.laptop.url.replace("http://127.0.0.1", OUTSIDE)))
    yield made
    made.close()


def ask(machines, model: str):
    url = f"http://127.0.0.1:{machines.port + 1}/m/{model}/api/chat"
    body = {"model": model, "messages": [{"role": "user", "content": "a secret"}], "stream": False}
    request = urllib.request.Request(url, json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_an_address_that_is_not_trusted_is_asked_nothing(machines):
    for words in (
        ["discover"], ["nodes"], ["warmup"], ["validate", "--online"], ["doctor"], ["up"],
        ["benchmark", "--node", "laptop"], ["recommend"], ["status"],
    ):  # fmt: skip
        machines.scratch.type(*words)
    status, reply = ask(machines, "small-coder")
    assert (status, machines.laptop.seen) == (503, [])
    assert "fleet trust --show" in reply
    assert ask(machines, "heavy-coder")[0] == 200, "the other node serves"


def test_trust_lists_the_address_and_then_it_is_used(machines):
    row = machines.scratch.data("trust", "--show")["settings"][0]
    assert row["setting"] == "nodes.laptop.endpoint"
    assert row["value"].startswith(OUTSIDE)
    assert "not trusted" in machines.scratch("discover")
    machines.scratch("trust")
    machines.scratch("up")
    assert ask(machines, "small-coder")[0] == 200
