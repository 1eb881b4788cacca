from __future__ import annotations

import pytest

from fleet.domain.fleet import Model, Node, Serving
from fleet.domain.nodes.model_sizes import billions, spoken_of

NODE = Node("n", "ollama", "http://127.0.0.1:1")


def model(name: str, upstream: str) -> Model:
    return Model(name, name, (Serving(NODE, upstream, 8192, 60, 1),))


@pytest.mark.parametrize(
    ("upstream", "size"),
    [("qwen2.5-coder:7b", 7), ("Qwen/Qwen3-32B", 32), ("llama3.2:1.5b", 1.5), ("gpt-oss", 0)],
)
def test_the_size_is_in_the_name(upstream, size):
    assert billions(model("m", upstream)) == size


def test_the_smallest_and_the_biggest_are_called_so():
    models = [model("a", "x:7b"), model("b", "x:14b"), model("c", "x:32b"), model("a", "x:7b")]
    assert spoken_of(models, {}) == {
        "a": "your small model",
        "b": "your model b",
        "c": "your big model",
    }


def test_memory_knows_better_than_names():
    models = [model("a", "x:70b"), model("b", "x:7b")]
    assert spoken_of(models, {"a": 5, "b": 9})["a"] == "your small model"
    assert spoken_of(models, {"a": 5})["a"] == "your big model"


@pytest.mark.parametrize("names", [["x:7b"], ["x:7b", "y:7b"], ["gpt-oss", "x:7b"], []])
def test_where_nobody_can_tell_the_name_is_said(names):
    models = [model(name, name) for name in names]
    assert spoken_of(models, {}) == {name: f"your model {name}" for name in names}
