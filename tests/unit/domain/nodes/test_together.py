from __future__ import annotations

import pytest

from fleet.domain.errors import Refused
from fleet.domain.fleet import Agent, Fleet, Gateway, Model, Node, Serving
from fleet.domain.nodes.together import owners, together


def fleet_of(node="mini", url="http://mini:11434", model="coder", agent="worker", **rest) -> Fleet:
    machine = Node(node, "ollama", url)
    made = Model(model, f"{model}-local", (Serving(machine, "qwen", 8192, 60.0, 1),))
    agents = {agent: Agent(agent, "claude", made)}
    return Fleet(agent, nodes={node: machine}, models={model: made}, agents=agents, **rest)


def test_the_same_fleet_twice_is_that_fleet():
    both = together({"/a": fleet_of(), "/b": fleet_of()})
    assert both.nodes == fleet_of().nodes
    assert both.models == fleet_of().models


def test_a_machine_is_one_node_whatever_each_project_calls_it():
    both = together({"/a": fleet_of(), "/b": fleet_of("server", model="other", agent="scout")})
    assert list(both.nodes) == ["mini"]
    assert both.models["other"].servings[0].node is both.nodes["mini"]
    assert both.agents["scout"].model.servings[0].node is both.nodes["mini"]


def test_a_model_belongs_to_the_project_that_alone_has_it():
    fleets = {"/a": fleet_of(), "/b": fleet_of(model="other"), "/c": fleet_of()}
    assert owners(fleets) == {"coder": "", "other": "/b"}


@pytest.mark.parametrize(
    ("second", "what"),
    [
        (fleet_of(url="http://elsewhere:11434", model="other", agent="b"), "node 'mini'"),
        (fleet_of("x", "http://elsewhere:11434", agent="b"), "model 'coder'"),
        (fleet_of(model="other"), "name 'fleet-worker'"),
        (fleet_of(gateway=Gateway(host="0.0.0.0")), "settings of the gateway"),
    ],
)
def test_what_means_two_things_is_refused_with_both_projects(second, what):
    with pytest.raises(Refused) as caught:
        together({"/a": fleet_of(), "/b": second})
    assert f"/a and /b mean different things by the {what}" in caught.value.message
