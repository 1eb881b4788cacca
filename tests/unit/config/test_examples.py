"""A fleet.yaml written for subagent-fleet is valid as it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from fleet.domain.fleet import Otlp

EXAMPLES = Path(__file__).parent / "examples"


@pytest.mark.parametrize("name", ["readme", "spec"])
def test_the_published_examples_mean_what_they_meant(world, name):
    fleet = world.fleet((EXAMPLES / f"{name}.yaml").read_text()).trust().load().fleet
    assert fleet.name == "local-dev"
    assert fleet.gateway.host == {"readme": "127.0.0.1", "spec": "0.0.0.0"}[name]
    assert (fleet.gateway.port, fleet.gateway.master_key_env) == (4000, "LITELLM_MASTER_KEY")
    assert list(fleet.nodes) == ["m5-local", "m4-mini-64gb", "m4-mini-16gb"]
    implementer = fleet.agent("implementer")
    serving = implementer.model.servings[0]
    assert (serving.node.endpoint, serving.upstream) == (
        "http://192.168.1.50:11434",
        "qwen2.5-coder:32b",
    )
    assert (serving.context, serving.timeout, serving.slots) == (32768, 600, 1)
    assert implementer.model is fleet.model("heavy-coder") is fleet.model("claude-sonnet-local")
    assert implementer.tools == ("Read", "Grep", "Glob", "Edit", "MultiEdit", "Bash")
    assert fleet.agent("planner").prompt.startswith("You are a fast local planning agent.\nDo not")
    assert fleet.agent("reviewer").prompt


def test_the_readmes_example_needs_trust_for_its_addresses_only_and_then_gives_no_warning(world):
    world.fleet((EXAMPLES / "readme.yaml").read_text())
    assert {path[2] for path in world.load().asked} == {"endpoint"}
    assert world.trust().load().warnings == ()


def test_a_gateway_open_to_the_network_needs_trust(world):
    loaded = world.fleet((EXAMPLES / "spec.yaml").read_text()).load()
    assert loaded.fleet.gateway.host == "127.0.0.1"
    assert "project.gateway.host" in loaded.warnings[0]


OLDER = """\
project:
  name: local-dev
  blackboard_enabled: true
  security: {zero_trust_a2a: true}
  dynamic_routing: DYNAMIC
  gpu_microscheduling: false
  observability: {langfuse: false, opentelemetry: false}
nodes:
  n: {endpoint: http://h:1}
models:
  m: {node: n, ollama_model: q, litellm_alias: a}
agents:
  a: {model: m, description: d, require_approval: APPROVAL, self_mutating: false}
"""


def test_what_an_older_file_does_not_ask_for_is_valid_and_what_is_so_anyway_a_warning(world):
    warnings = (
        world.fleet(OLDER.replace("DYNAMIC", "false").replace("APPROVAL", "false")).trust().load()
    )
    assert [line.split(": ", 1)[1] for line in warnings.warnings] == [
        "project.blackboard_enabled: is not needed: every team has a board.",
        "project.security.zero_trust_a2a: is not needed: every write is authenticated.",
    ]


def test_what_an_older_file_asks_for_and_fleet_does_not_do_is_refused_with_what_to_do(world):
    world.fleet(OLDER.replace("DYNAMIC", "true").replace("APPROVAL", "true"))
    problems = world.refuse()
    assert "fleet.yaml:5: project.dynamic_routing: is not something that Fleet does." in problems
    assert "Write rules under `routes:`" in problems
    assert "agents.a.require_approval" in problems
    assert "`permissions: read`" in problems


def test_observability_counts_once_it_is_trusted(world):
    world.fleet("observability: {otlp: http://localhost:4318, otlp_headers: os.environ/KEY}\n")
    assert world.load().fleet.otlp == Otlp()
    assert world.trust().load().fleet.otlp == Otlp("http://localhost:4318", "os.environ/KEY")


def test_mcp_servers_are_kept_whole(world):
    world.fleet("mcp_servers: {gh: {command: npx, args: [-y, gh], env: {TOKEN: abc}}}\n").trust()
    server = world.load().fleet.mcp_servers["gh"]
    assert (server.command, server.args, dict(server.env)) == (
        "npx",
        ("-y", "gh"),
        {"TOKEN": "abc"},
    )


def test_a_key_of_an_mcp_server_is_not_shown(world):
    from fleet.config.commands.show import all_of

    world.fleet("mcp_servers: {gh: {command: npx, env: {TOKEN: abc}}}\n").trust()
    assert "abc" not in repr(all_of(world.load()))


WITHOUT_LIBYAML = """\
import sys, yaml
from pathlib import Path
del yaml.CSafeLoader
from fleet.config import load
found = load(Path(), home=Path("home"), env={}, config_file=Path(sys.argv[1]))
print({path: str(origin) for path, origin in found.origins.items()})
"""


@pytest.mark.parametrize("text", ["", "team: a\x07\n", "a: [\n", "[" * 900])
def test_it_is_the_same_where_libyaml_is_missing(tmp_path, text):
    file = tmp_path / "other.yaml"
    file.write_text(text or (EXAMPLES / "readme.yaml").read_text())
    done = [
        subprocess.run(
            [sys.executable, "-c", code, "other.yaml"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        for code in (WITHOUT_LIBYAML, WITHOUT_LIBYAML.replace("del", "# del"))
    ]
    assert done[0].returncode == done[1].returncode == bool(text)
    assert done[0].stdout == done[1].stdout
    assert not text or all("InvalidConfig: other.yaml:" in each.stderr for each in done)
