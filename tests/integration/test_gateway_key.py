"""A run that asks the gateway has its key; no other run has."""

from __future__ import annotations

import shlex

import pytest

from fleet.testing.fake_node.node import FakeNode
from tests.integration.supervised_home import SupervisedHome
from tests.wait import LIMIT

FLEET_YAML = """\
nodes: {{here: {{endpoint: "{url}"}}}}
models: {{small: {{node: here, upstream: "qwen2.5-coder:7b"}}}}
agents:
  planner: {{coder: scripted, model: small, description: Plans.}}
  typist: {{coder: scripted, description: Types.}}
"""


@pytest.fixture
def supervised(tmp_path):
    made = SupervisedHome(tmp_path)
    with FakeNode() as node:
        (made.repo / "fleet.yaml").write_text(FLEET_YAML.format(url=node.url))
        yield made
        made.close()


def keys_of(supervised, *agents, **env) -> list[str]:
    shell = 'echo "key: $LITELLM_MASTER_KEY." > "$FLEET_ARTIFACT_DIR/key"'
    tell = f"run sh -c {shlex.quote(shell)}"
    tasks = [supervised.add(tell, agent=agent) for agent in agents]
    supervised.start("--once", **env).wait(LIMIT)
    supervised.supervisor = None
    found = [supervised.home / "tasks" / task / "artifacts" / "key" for task in tasks]
    return [file.read_text().strip() for file in found]


def test_the_key_that_was_made_is_given_to_those_who_ask_the_gateway(supervised):
    (supervised.home / "gateway.key").write_text("sk-of-the-file\n")
    assert keys_of(supervised, "planner", "typist") == ["key: sk-of-the-file.", "key: ."]


def test_the_key_of_the_environment_counts_more(supervised):
    (supervised.home / "gateway.key").write_text("sk-of-the-file\n")
    assert keys_of(supervised, "planner", LITELLM_MASTER_KEY="sk-mine") == ["key: sk-mine."]
