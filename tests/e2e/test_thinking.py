"""Whether a model can think: Ollama says so, fleet.yaml remembers it, the gateway passes the wish on."""

from __future__ import annotations

from fleet.adapters.gateway.litellm_config import litellm_config
from fleet.config import load
from fleet.testing.fake_node.node import FakeModel, FakeNode
from tests.e2e.scratch import Scratch


def dropped(scratch):
    fleet = load(scratch.repo, home=scratch.home, env=scratch.env).fleet
    return {
        each["model_name"]: each["litellm_params"].get("additional_drop_params", [])
        for each in litellm_config(fleet)["model_list"]
    }


def test_discover_writes_which_models_think_and_the_gateway_drops_the_wish_for_others(tmp_path):
    thinker = FakeModel("qwen3:8b", capabilities=("completion", "tools", "thinking"))
    scratch = Scratch(tmp_path)
    with FakeNode([thinker, "llama:3b"]) as node:
        (scratch.repo / "fleet.yaml").write_text(
            f"nodes: {{n: {{endpoint: '{node.url}'}}}}\n"
            "models:\n"
            "  deep: {node: n, upstream: 'qwen3:8b'}  # the large one\n"
            "  plain: {node: n, upstream: 'llama:3b'}\n"
        )
        assert dropped(scratch)["deep"] == ["thinking", "reasoning_effort"]
        notes = scratch.type("discover", "--write").stderr
    assert "models.deep.thinking=true" in notes
    text = (scratch.repo / "fleet.yaml").read_text()
    assert "thinking: true}  # the large one" in text
    assert dropped(scratch) == dropped(scratch) | {
        "deep": [],
        "plain": ["thinking", "reasoning_effort"],
    }
