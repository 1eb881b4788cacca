"""What `fleet validate` says of a file that is valid and will not work well."""

import pytest

from fleet.app.advice import advice
from tests.unit.config.conftest import World

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
def world(tmp_path):
    return World(tmp_path)


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


def test_a_tool_that_opencode_does_not_have_is_named_too(told):
    (found,) = told("  x: {coder: opencode, model: big, description: x, tools: [Read, Shell]}\n")
    assert "agents.x.tools: opencode has no Shell" in found
    assert "It will grant Read." in found


@pytest.mark.parametrize(
    ("coder", "says"), [("codex", "takes no list of tools"), ("aider", "calls no tools")]
)
def test_a_list_of_tools_that_the_program_does_not_heed_is_told(told, coder, says):
    (found,) = told(f"  x: {{coder: {coder}, model: big, description: x, tools: [Read]}}\n")
    assert found.startswith(f"fleet.yaml:11: agents.x.tools: {coder} {says}")
    assert told(f"  x: {{coder: {coder}, model: big, description: x}}\n") == []


@pytest.mark.parametrize(
    ("coder", "few", "enough"),
    [("codex", 8192, 32768), ("opencode", 8192, 32768), ("aider", 4096, 8192)],
)
def test_each_program_is_known_by_what_it_begins_with(world, coder, few, enough):
    text = FLEET + f"  x: {{coder: {coder}, model: big, description: x}}\n"
    (found,) = advice(world.fleet(text.replace("32768", str(few))).load())
    assert f"models.big.context: {few} tokens are too few for {coder.title()[:4]}" in found
    assert f"x cannot work with it. Serve it with {enough} or more." in found
    assert advice(world.fleet(text.replace("32768", str(enough))).load()) == []


def test_tools_of_a_program_that_we_do_not_know_are_its_own_matter(told):
    assert told("  impl: {coder: scripted, model: big, description: x, tools: [Fly]}\n") == []


def test_a_model_that_is_called_as_an_agent_is_at_the_gateway_is_named(world):
    text = FLEET.replace("  small:", "  fleet-p:") + "  p: {model: big, description: x}\n"
    (found,) = advice(world.fleet(text).load())
    assert found.startswith(
        "fleet.yaml:5: models.fleet-p: 'fleet-p' is the name of the agent p at the gateway"
    )
    assert "requests for it go to big, not to this model." in found


def test_a_model_that_is_called_as_its_own_agent_is_meant_so(world):
    text = FLEET.replace("  big:", "  fleet-p:") + "  p: {model: fleet-p, description: x}\n"
    assert advice(world.fleet(text).load()) == []
