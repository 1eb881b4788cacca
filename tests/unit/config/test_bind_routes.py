"""`routes:`, and `tags` and `needs`, as a file declares them."""

from __future__ import annotations

import pytest

from fleet.domain.errors import BadConfig

FLEET = """\
nodes:
  box: {endpoint: http://box:1, tags: [gpu, office]}
  mini: {endpoint: http://mini:1, tags: [office]}
models:
  heavy: {servings: {mini: q, box: q}}
  light: {node: mini, upstream: p}
  pinned: {servings: {mini: q, box: q}, alias: pinned, needs: [gpu], fallbacks: [light]}
agents:
  coder: {model: heavy, description: d, needs: [gpu]}
  writer: {model: light, description: d}
"""


def nodes(model):
    return [serving.node.name for serving in model.servings]


def test_needs_of_a_model_and_of_an_agent_leave_the_nodes_that_have_the_tags(world):
    fleet = world.fleet(FLEET).load().fleet
    assert nodes(fleet.model("heavy")) == ["mini", "box"]
    assert nodes(fleet.model("pinned")) == ["box"]
    assert nodes(fleet.agent("coder").model) == ["box"]
    assert fleet.agent("coder").model is fleet.model("heavy+gpu")
    assert [model.name for model in fleet.own_models] == ["heavy", "light", "pinned"]


def test_routes_are_kept_in_their_order_and_declare_the_nodes_that_they_need(world):
    world.fleet(
        FLEET
        + "routes:\n"
        + "  big: {longer_than: 5000, model: heavy, needs: [gpu, office]}\n"
        + "  text: {files: ['*.md'], model: light}\n"
    )
    fleet = world.load().fleet
    assert [route.name for route in fleet.routes] == ["big", "text"]
    assert nodes(fleet.model("heavy+gpu+office")) == ["box"]


@pytest.mark.parametrize(
    ("route", "message"),
    [
        ("{labels: [x], agent: writr}", "routes.r.agent: 'writr' is not an agent"),
        ("{labels: [x], model: hevy}", "routes.r.model: 'hevy' is not under `models`"),
        ("{labels: [x]}", "routes.r: chooses nothing"),
        ("{model: light, needs: [gpu]}", "no node that serves 'light' has the tags 'gpu'"),
        ("{agent: codex, needs: [gpu]}", "its model has none"),
        ("{model: light, longer_than: 9, shorter_than: 10}", "no text is longer than 9"),
        ("{model: light, words: []}", "routes.r.words: is empty"),
        ("{model: light, label: x}", "Did you mean 'labels'"),
    ],
)
def test_a_wrong_route_is_named_with_its_line(world, route, message):
    world.fleet(f"{FLEET}routes:\n  r: {route}\n")
    with pytest.raises(BadConfig) as error:
        world.load()
    problems = str(error.value) + str(error.value.fix)
    assert message in problems
    assert "fleet.yaml:12" in problems


def test_a_route_that_never_gets_a_task_is_a_warning(world):
    world.fleet(f"{FLEET}routes:\n  all: {{model: light}}\n  docs: {{labels: [d], model: heavy}}\n")
    (warning,) = world.trust().load().warnings
    assert "routes.docs: matches no task: 'all' is before it" in warning


def test_the_agent_of_a_route_counts_once_the_project_is_trusted(world):
    world.fleet(f"{FLEET}routes:\n  docs: {{labels: [d], agent: writer}}\n")
    loaded = world.load()
    assert loaded.fleet.routes == ()
    assert "routes.docs.agent" in loaded.withheld
