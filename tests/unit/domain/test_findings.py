from __future__ import annotations

import pytest

from fleet.domain.findings import (
    exposed_gateway,
    exposed_nodes,
    is_old,
    is_weak,
    is_wide,
    judged_contexts,
    judged_nodes,
    judged_slots,
)
from fleet.domain.fleet import Fleet, Gateway, Model, Node, Serving
from fleet.domain.nodes.inventory import Inventory, NodeModel, Resident, SeenNode

LONG = "sk-0123456789abcdef0123"


@pytest.mark.parametrize(
    ("version", "least", "old"),
    [
        ("2.37.9", "2.38", True),
        ("2.38", "2.38", False),
        ("2.100.1", "2.38", False),
        ("3.3a", "3.2", False),
        ("3.1c", "3.2", True),
        ("10.0", "3.2", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version, least, old):
    assert is_old(version, least) is old


@pytest.mark.parametrize(
    ("host", "wide"),
    [
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("localhost", False),
        ("::1", False),
        ("0.0.0.0", True),
        ("::", True),
        ("192.168.1.5", True),
        ("buildbox", True),
        ("", True),
    ],
)
def test_whether_a_server_answers_beyond_its_machine(host, wide):
    assert is_wide(host) is wide


@pytest.mark.parametrize("key", ["sk-1234", "sk-local-dev", "secret", ""])
def test_keys_that_can_be_guessed_are_weak(key):
    assert is_weak(key)
    assert not is_weak(LONG)


@pytest.mark.parametrize(
    ("host", "key", "state"),
    [
        ("127.0.0.1", "sk-1234", "ok"),
        ("0.0.0.0", "sk-1234", "bad"),
        ("192.168.1.5", "short", "bad"),
        ("0.0.0.0", LONG, "ok"),
        ("0.0.0.0", "", "ok"),  # ours is used, which is long
    ],
)
def test_a_gateway_beyond_this_machine_needs_a_good_key(host, key, state):
    found = exposed_gateway(Gateway(host=host), key)
    assert found.state == state
    assert bool(found.fix) == (state == "bad")


def node(endpoint: str, **given) -> Node:
    return Node("n", "ollama", endpoint, **given)


@pytest.mark.parametrize(
    ("endpoint", "states"),
    [
        ("http://localhost:11434", []),
        ("http://127.0.0.1:11434", []),
        ("http://[::1]:11434", []),
        ("http://192.168.1.50:11434", ["warning"]),
        ("http://100.101.5.7:11434", ["warning"]),
        ("http://mini.local:11434", ["warning"]),
        ("http://8.8.8.8:11434", ["bad"]),
        ("http://user@8.8.8.8:11434", ["bad"]),
        ("http://[2001:4860:4860::8888]:11434", ["bad"]),
        ("", []),
    ],
)
def test_a_node_that_asks_for_no_key_is_judged_by_who_can_reach_it(endpoint, states):
    assert [each.state for each in exposed_nodes([node(endpoint)])] == states
    assert list(exposed_nodes([node(endpoint, api_key="os.environ/K")])) == []


def seen(kind: str, context: int, name: str = "m") -> list[SeenNode]:
    held = Inventory(kind, (NodeModel(name),), (Resident(name, context=context),))
    return [SeenNode("n", up=True, inventory=held)]


def fleet() -> Fleet:
    one = node("http://127.0.0.1:1")
    model = Model("coder", "coder", (Serving(one, "m", 8192, 60, 1),))
    return Fleet("shop", nodes={"n": one}, models={"coder": model})


@pytest.mark.parametrize(
    ("kind", "context", "fix"),
    [
        ("ollama", 8192, ""),
        ("ollama", 4096, "fleet warmup --model coder"),
        ("ollama", 16_384, "fleet warmup --model coder"),
        ("vllm", 4096, "fleet config set --project models.coder.context=4096"),
        ("vllm", 32_768, ""),
    ],
)
def test_the_context_of_what_is_resident_is_the_configured_one(kind, context, fix):
    (found,) = judged_contexts(fleet(), seen(kind, context))
    assert (found.state, found.fix) == ("bad" if fix else "ok", fix)


def test_a_context_that_no_node_tells_is_not_judged():
    assert list(judged_contexts(fleet(), seen("ollama", 0))) == []
    assert list(judged_contexts(fleet(), [SeenNode("n", up=False, why="off")])) == []


def test_nodes_that_are_off_or_lack_a_model_are_bad():
    (off,) = judged_nodes(fleet(), [SeenNode("n", up=False, why="connection refused")])
    assert off.state == "bad"
    assert off.said == "n (http://127.0.0.1:1) does not answer: connection refused."
    lacks, up = judged_nodes(fleet(), seen("ollama", 1, name="other"))
    assert (lacks.fix, up.state) == ("On n: ollama pull m", "ok")


@pytest.mark.parametrize(
    ("kind", "has", "slots", "said"),
    [
        ("llamacpp", 1, 4, "rack works on 1 at once; models.m.max_parallel is 4"),
        ("llamacpp", 4, 4, ""),
        ("llamacpp", 4, 1, ""),
        ("ollama", None, 1, ""),
        ("vllm", None, 1, "rack works on many requests at once with little loss"),
        ("sglang", None, 1, "models.m.max_parallel is 1, so it gets one after the other"),
        ("openrouter", None, 1, "fleet config set --project models.m.max_parallel=8"),
        ("vllm", None, 2, ""),
    ],
)
def test_too_many_requests_at_once_and_too_few_are_named(kind, has, slots, said):
    node = Node("rack", kind, "http://127.0.0.1:8000")
    model = Model("m", "m", (Serving(node, "m", 8192, 300.0, slots),))
    fleet = Fleet("x", Gateway(), {"rack": node}, {"m": model})
    seen = [SeenNode("rack", True, inventory=Inventory(kind, slots=has))]
    told = " ".join(f"{each.said} {each.fix}" for each in judged_slots(fleet, seen))
    assert said in told if said else not told
