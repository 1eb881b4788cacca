"""The fleets in examples/: each is valid, and beside it lies what is generated from it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.e2e.scratch import Scratch

EXAMPLES = Path(__file__).parents[2] / "examples"
ONLY = {"litellm-proxy": ["--litellm-only"], "claude-agents": ["--claude-only"]}
NAMES = ["ollama-laptop-only", "multi-node-cluster", "litellm-proxy", "claude-agents"]


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def texts(top: Path) -> dict[str, str]:
    found = {path.relative_to(top).as_posix(): path for path in top.rglob("*") if path.is_file()}
    ours = {".fleet/generated.json", "README.md", "fleet.yaml"}
    return {name: path.read_text() for name, path in found.items() if name not in ours}


def test_these_are_all_examples():
    assert sorted(
        path.name for path in EXAMPLES.iterdir() if (path / "fleet.yaml").is_file()
    ) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_valid_without_a_warning(scratch, name):
    shutil.copy(EXAMPLES / name / "fleet.yaml", scratch.repo)
    scratch("trust")  # the addresses of its nodes
    assert scratch("validate") == "fleet.yaml is valid.\n"


@pytest.mark.parametrize("name", NAMES)
def test_what_lies_beside_it_is_what_is_generated(scratch, name):
    there = scratch.root / "there"
    file = EXAMPLES / name / "fleet.yaml"
    scratch("trust", "--config", str(file))
    done = scratch.type("generate", "--config", str(file), "--out", str(there), *ONLY.get(name, []))
    assert (done.returncode, done.stderr) == (0, "")
    made, held = texts(there), texts(EXAMPLES / name)
    assert made.keys() == held.keys()
    for path, text in made.items():
        assert held[path] == text, f"run `fleet generate --force` in examples/{name}: {path}"


def test_the_examples_between_them_show_a_fallback_two_nodes_and_every_role():
    fleets = [yaml.safe_load((EXAMPLES / name / "fleet.yaml").read_text()) for name in NAMES]
    models = [model for fleet in fleets for model in fleet["models"].values()]
    assert any(len(model.get("servings", {})) > 1 for model in models)
    assert any(model.get("fallbacks") for model in models)
    agents = {name for fleet in fleets for name in fleet.get("agents", {})}
    assert {"planner", "implementer", "reviewer", "summarizer"} <= agents


def test_no_example_holds_a_key():
    for path in EXAMPLES.rglob("*"):
        if path.is_file():
            assert "sk-" not in path.read_text(), path
