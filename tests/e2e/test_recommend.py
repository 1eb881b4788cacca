"""`fleet recommend`: what it says of stand-in nodes, and what `--apply` makes of fleet.yaml."""

from __future__ import annotations

import pytest

from fleet.testing.fake_node.node import FakeModel, FakeNode
from tests.e2e.scratch import Scratch

SMALL = FakeModel("qwen2.5-coder:7b", size=4_700_000_000)
HEAVY = FakeModel("qwen2.5-coder:32b", size=20_000_000_000, parameters=32_000_000_000)
FLEET_YAML = """\
# The machines at home.
nodes:
  laptop:
    endpoint: {laptop}   # under the desk
    memory: {laptop_memory}
  tower: {{endpoint: "{tower}", memory: {tower_memory}}}

models:
  small:
    node: laptop   # for what must be quick
    ollama_model: qwen2.5-coder:7b
    litellm_alias: claude-haiku-local
    context: 32768
  heavy:
    node: tower
    ollama_model: qwen2.5-coder:32b
    context: 32768
    timeout: 600

agents:
  planner:
    model: heavy   # to be tried
    description: Plans.
  implementer: {{model: small, description: Does it.}}
"""


class Place:
    def __init__(self, root) -> None:
        self.scratch = Scratch(root)
        self.laptop = FakeNode([SMALL], prefill=8000, decode=400, output=100).start()
        self.tower = FakeNode([SMALL, HEAVY], prefill=4000, decode=200, output=100).start()
        self.file = self.scratch.repo / "fleet.yaml"
        self.write()

    def write(self, text: str = FLEET_YAML, laptop: str = "8GB", tower: str = "48GB") -> None:
        self.file.write_text(
            text.format(
                laptop=self.laptop.url,
                tower=self.tower.url,
                laptop_memory=laptop,
                tower_memory=tower,
            )
        )

    def measure(self) -> None:
        self.scratch(
            "benchmark", "--repeat", "1", "--prompt-tokens", "200", "--output-tokens", "20"
        )

    def changes(self) -> dict[str, object]:
        found = self.scratch.data("recommend")["changes"]
        assert all(change["why"].endswith(".") for change in found)
        return {change["setting"]: change["value"] for change in found}


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.laptop.stop()
    made.tower.stop()


def test_it_is_shown_as_a_change_with_reasons_and_writes_nothing(place):
    place.measure()
    before = place.file.read_bytes()
    done = place.scratch.type("recommend")
    assert done.returncode == 0
    assert "-    model: heavy   # to be tried\n+    model: small   # to be tried\n" in done.stdout
    assert "A planner gains most by a quick answer: a turn takes 1." in done.stdout
    assert "An implementer gains most by a large model: heavy has 32 billion" in done.stdout
    assert "`fleet recommend --apply` writes it." in done.stderr
    assert place.file.read_bytes() == before


def test_apply_writes_it_keeps_every_comment_and_then_there_is_nothing_left(place):
    place.measure()
    wanted = place.changes()
    assert wanted == {
        "agents.planner.model": "small",
        "agents.implementer.model": "heavy",
        "models.small-tower.node": "tower",
        "models.small-tower.upstream": "qwen2.5-coder:7b",
        "models.small-tower.alias": "claude-haiku-local",
        "models.small-tower.context": 32768,
        "models.heavy.fallbacks": ["small"],
    }
    place.scratch("recommend", "--apply")
    text = place.file.read_text()
    for comment in ("# The machines", "# under the desk", "# for what must", "# to be tried"):
        assert comment in text
    said = place.scratch.type("validate")
    assert (said.returncode, "small-tower" in said.stderr) == (0, False)
    assert "There is nothing to improve." in place.scratch("recommend")
    routes = place.scratch.data("status")["routes"]
    served = {(route["agent"], route["node"]) for route in routes}
    assert {("planner", "laptop"), ("planner", "tower"), ("implementer", "tower")} <= served


def test_a_copy_of_a_model_without_an_alias_is_one_model_with_it_and_warns_of_nothing(place):
    text = FLEET_YAML.replace("    litellm_alias: claude-haiku-local\n", "")
    place.write(text, laptop="10GB")
    place.scratch("recommend", "--apply")
    done = place.scratch.type("validate")
    assert done.returncode == 0
    assert "alias" not in done.stderr
    nodes = [
        r["node"] for r in place.scratch.data("status")["routes"] if r["agent"] == "implementer"
    ]
    assert nodes == ["laptop", "tower"]


def test_a_model_that_does_not_fit_with_its_context_is_moved_or_gets_less(place):
    place.write(laptop="6.5GB", tower="48GB")  # small needs 8.7 GB with its context
    changes = place.changes()
    assert changes["models.small.node"] == "tower"
    place.write(laptop="6.5GB", tower="28GB")  # which holds heavy, and nothing beside it
    found = place.scratch.document("recommend")
    needs = [note for note in found["notes"] if "The models of laptop need" in note]
    assert len(needs) == 1
    alone = FLEET_YAML.replace("node: tower\n", "node: laptop\n")
    place.write(alone, laptop="6.5GB", tower="4GB")
    assert place.changes()["models.small.context"] == 8192


def test_without_memory_and_without_figures_it_says_so_and_guesses_nothing(place):
    place.write(
        FLEET_YAML.replace("    memory: {laptop_memory}\n", "").replace(
            ", memory: {tower_memory}", ""
        )
    )
    document = place.scratch.document("recommend")
    settings = [change["setting"] for change in document["data"]["changes"]]
    assert not any(name.startswith("agents.") or name == "models.small.node" for name in settings)
    notes = " ".join(document["notes"])
    assert "The memory of laptop and tower is not known" in notes
    assert "Not measured: small on laptop and heavy on tower." in notes


def test_a_node_that_is_down_is_named_and_nothing_is_moved_there(place):
    place.measure()
    place.tower.set(refuse=True)
    document = place.scratch.document("recommend")
    assert "tower did not answer, so nothing is moved there." in document["notes"]
    moved = [c for c in document["data"]["changes"] if c["value"] == "tower"]
    assert moved == []


def test_each_agent_and_node_is_shown_with_what_it_will_have(place):
    place.measure()
    data = place.scratch.data("recommend")
    planner = next(seat for seat in data["agents"] if seat["agent"] == "planner")
    assert (planner["model"], planner["nodes"]) == ("small", ["laptop", "tower"])
    assert planner["seconds"] == pytest.approx(4000 / 8000 + 400 / 400, rel=0.1)
    tower = next(node for node in data["nodes"] if node["node"] == "tower")
    assert tower["models"] == ["small", "heavy"]
    assert 0 < tower["needed"] < tower["memory"] == 48 << 30


def test_outside_a_fleet_it_says_what_is_missing(place):
    place.file.unlink()
    assert "No nodes are declared here." in place.scratch.fails("recommend", status=2)


def test_without_a_measurement_it_does_not_say_that_all_is_well(place):
    text = place.file.read_text().replace(place.laptop.url, "http://127.0.0.1:9")
    place.file.write_text(text.replace(place.tower.url, "http://127.0.0.1:10"))
    said = place.scratch("recommend")
    assert said.startswith("Nothing can be compared yet: `fleet benchmark` measures")
