"""What `fleet validate` says of a file that is valid and will not work well."""

import pytest

from fleet.config.advice import advice

FLEET = """\
project: {name: x}
nodes:
  mini: {endpoint: "http://localhost:11434"}
models:
  small: {node: mini, upstream: "qwen:7b"}
  big:
    node: mini
    upstream: "qwen:32b"
    context: 32768
agents:
"""


@pytest.fixture
def told(world):
    return lambda agents: advice(world.fleet(FLEET + agents).load())


def test_a_context_too_small_for_claude_code_is_named_with_its_agents(told):
    agents = "  planner: {model: small, description: x}\n  looker: {model: small, description: x}\n"
    (found,) = told(agents)
    assert found.startswith("fleet.yaml:5: models.small.context: 8192 tokens are too few")
    assert "planner, looker" in found


def test_the_place_of_a_context_that_is_written_is_its_own_line(world):
    text = FLEET + "  implementer: {model: big, description: x}\n"
    assert advice(world.fleet(text).load()) == []
    (found,) = advice(world.fleet(text.replace("32768", "16384")).load())
    assert found.startswith("fleet.yaml:9: models.big.context: 16384")


def test_a_small_context_is_enough_for_a_program_that_asks_for_less(told):
    assert told("  planner: {coder: scripted, model: small, description: x}\n") == []


def test_a_tool_that_the_program_does_not_have_is_named_with_what_it_will_grant(told):
    (found,) = told("  impl: {model: big, description: x, tools: [Read, MultiEdit, Bash]}\n")
    assert found.startswith("fleet.yaml:11: agents.impl.tools: claude has no MultiEdit")
    assert "It will grant Read, Bash." in found
    assert "Edit does what MultiEdit did." in found


def test_tools_of_another_program_are_its_own_matter(told):
    assert told("  impl: {coder: codex, model: big, description: x, tools: [MultiEdit]}\n") == []
