"""What GitHub runs: it parses, runs what is there, and is pinned."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml

from tests.docs.tree import TOP, files, name

WORKFLOWS = files(".github/workflows/*.yml")
OURS = [*files(".github/*.yml"), *files(".pre-commit-config.yaml")]


def steps(path) -> list[dict]:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_there_are_workflows_for_changes_and_for_releases():
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml"]


@pytest.mark.parametrize("path", OURS, ids=name)
def test_a_file_for_github_is_yaml(path):
    assert isinstance(yaml.safe_load(path.read_text()), dict)


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_runs_targets_and_scripts_that_are_there(path):
    targets = set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), re.MULTILINE))
    lines = "\n".join(step.get("run", "") for step in steps(path))
    assert set(re.findall(r"\bmake ([a-z-]+)", lines)) <= targets
    assert all((TOP / script).exists() for script in re.findall(r"\bscripts/[\w-]+", lines))


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_uses_actions_by_the_commit_that_was_read(path):
    used = re.findall(r"uses: (.*)", path.read_text())
    assert [u for u in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", u)] == []


def test_every_python_that_we_promise_is_tried():
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    promised = {c.rpartition(" :: ")[2] for c in project["classifiers"] if ":: 3." in c}
    matrix = yaml.safe_load((TOP / ".github/workflows/ci.yml").read_text())["jobs"]["test"]
    assert set(matrix["strategy"]["matrix"]["python"]) == promised
