"""`routes:` choose who does a task, as a person types it; tags choose the nodes of the relay."""

from __future__ import annotations

import json

import pytest

from fleet.adapters.gateway.litellm_config import litellm_config
from fleet.adapters.relay import plan
from fleet.config import load
from tests.e2e.scratch import Scratch

FLEET = """\
nodes:
  box: {endpoint: "http://127.0.0.1:9", tags: [gpu]}
  mini: {endpoint: "http://127.0.0.1:19"}
models:
  heavy: {servings: {mini: q, box: q}, context: 65536}
agents:
  dba: {coder: scripted, model: heavy, description: Tunes queries., needs: [gpu]}
routes:
  queries: {files: ["*.sql"], agent: dba}
  long: {longer_than: 2000, model: heavy}
"""


@pytest.fixture
def fleet(tmp_path):
    scratch = Scratch(tmp_path)
    (scratch.repo / "fleet.yaml").write_text(FLEET)
    scratch("trust")
    return scratch


def test_show_and_explain_say_which_route_chose_the_agent(fleet):
    fleet("add", "Speed up db/orders.sql")
    shown = fleet("show", "t-1")
    assert "dba" in shown
    assert "heavy+gpu" in shown
    assert "routes.queries matched when it was added" in shown
    assert "the default" not in shown
    assert "routes.queries matched: dba with heavy+gpu" in fleet("explain", "t-1")
    fleet("add", "Something else")
    assert "route" not in fleet("show", "t-2")
    fleet("add", "Speed up db/orders.sql", "--agent", "scripted")
    assert json.loads(fleet("show", "t-3", "--json"))["data"]["task"]["route"] == ""


def test_a_frozen_choice_outlives_the_rule(fleet):
    fleet("add", "Speed up db/orders.sql")
    (fleet.repo / "fleet.yaml").write_text(FLEET.replace('"*.sql"', '"*.py"'))
    fleet("trust")
    assert json.loads(fleet("show", "t-1", "--json"))["data"]["task"]["agent"] == "dba"


def test_validate_names_a_rule_that_cannot_match(fleet):
    more = "  again: {files: ['*.sql'], words: [index], model: heavy}\n"
    (fleet.repo / "fleet.yaml").write_text(FLEET + more)
    fleet("trust")
    done = fleet.type("validate")
    assert "routes.again: matches no task: 'queries' is before it" in done.stdout + done.stderr


def test_the_relay_and_the_gateway_answer_an_agent_on_the_nodes_with_its_tags(fleet):
    declared = load(fleet.repo, home=fleet.home, env=fleet.env).fleet
    deployment = next(
        d for d in litellm_config(declared)["model_list"] if d["model_name"] == "fleet-dba"
    )
    assert deployment["litellm_params"]["api_base"].endswith("/a/dba/m/heavy%2Bgpu")
    read = plan.plan_of(plan.relay_config(declared)).fleet
    assert [s.node.name for s in read.models["heavy+gpu"].servings] == ["box"]
