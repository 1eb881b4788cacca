from __future__ import annotations

from fleet.domain.choice import model_slots
from fleet.domain.fleet import Fleet, Gateway, Model, Node, Serving
from fleet.domain.run import Choice


def serving(name, slots=1):
    return Serving(Node(name, "ollama", f"http://{name}"), "m", 8192, 300.0, slots)


SMALL = Model("small", "small", (serving("c", 4),))
MIDDLE = Model("middle", "middle", (serving("b"),), (SMALL,))
BIG = Model("big", "big", (serving("a"),), (MIDDLE,))
FLEET = Fleet("x", Gateway(), {}, {each.name: each for each in (BIG, MIDDLE, SMALL)})


def nodes(*down):
    reasons = {f"http://{name}" if len(name) == 1 else name: "refused" for name in down}
    return [slot.node for slot in model_slots(Choice("coder", "claude", "big"), FLEET, reasons)]


def test_a_fallback_takes_tasks_only_while_all_nodes_of_the_model_are_down():
    assert nodes() == ["a"]
    assert nodes("b") == ["a"]
    assert nodes("a") == ["a", "b"]
    assert nodes("a", "b") == ["a", "b", "c"]
    assert nodes("a", "b", "c") == ["a", "b", "c"]


def test_a_model_that_the_relay_has_shut_off_on_its_node_is_as_one_whose_node_is_down():
    assert nodes("m@http://a") == ["a", "b"]
    assert nodes("m@http://a", "b") == ["a", "b", "c"]
    assert nodes("other@http://a") == ["a"]


def test_each_host_has_slots_of_its_own_at_an_address_that_means_itself():
    def names(endpoint, *hosts):
        node = Node("n", "ollama", endpoint, max_parallel=2)
        model = Model("own", "own", (Serving(node, "m", 8192, 300.0, 1),))
        fleet = Fleet("x", Gateway(), {}, {"own": model})
        slots = model_slots(Choice("coder", "claude", "own"), fleet, {}, hosts)
        return [slot.name for one in slots for slot in one.all]

    assert names("http://localhost:11434", "h1") == [
        "m@http://localhost:11434 on host h1",
        "node http://localhost:11434 on host h1",
    ]
    assert len(names("http://127.0.0.1:8080/v1", "h1", "h2")) == 4
    assert len(names("http://[::1]:8080", "h1", "h2")) == 4
    for shared in ("http://gpu:11434", "http://localhost.example.org", "http://10.0.0.7:1"):
        assert names(shared, "h1", "h2") == [f"m@{shared}", f"node {shared}"]
