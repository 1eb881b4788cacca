from __future__ import annotations

import hashlib
import json
import subprocess
import tomllib

import pytest
import yaml

from fleet.adapters.coders.shared.quoting import quoted
from tests.e2e.scratch import Scratch

SEEDED = """\
project:
  name: local-dev
nodes:
  big: {endpoint: "http://127.0.0.1:11434"}
  small: {endpoint: "http://127.0.0.1:11435"}
models:
  heavy-coder:
    node: big
    ollama_model: qwen2.5-coder:32b
    litellm_alias: claude-sonnet-local
    context: 32768
    timeout: 600
  small-coder:
    node: small
    ollama_model: qwen2.5-coder:7b
    litellm_alias: claude-haiku-local
    fallbacks: [heavy-coder]
agents:
  planner:
    model: small-coder
    description: Use for planning.
    tools: [Read, Grep, Glob]
    prompt: |
      You are a fast local planning agent.
  implementer:
    model: heavy-coder
    description: Use for implementation.
    tools: [Read, Edit, MultiEdit, Bash]
"""
FILES = [
    "litellm_config.yaml",
    ".claude/agents/planner.md",
    ".claude/agents/implementer.md",
    ".env.subagent-fleet",
]
AWKWARD = [
    'say "hi": yes # no',
    "---\nname: other\n---",
    "tab\there, nul-free \x7f \x85 \u2028 end \\",
    "größe 🚀",
    "{{ jinja }} ${HOME} $(id) `id` %s",
]


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    (made.repo / "fleet.yaml").write_text(SEEDED)
    return made


def front(scratch, name):
    text = (scratch.repo / f".claude/agents/{name}.md").read_text()
    _, head, body = text.split("---\n", 2)
    return yaml.safe_load(head), body


def test_it_writes_what_the_gateway_and_claude_code_read(scratch):
    said = scratch("generate")
    assert said.splitlines()[:5] == ["Generated:", *(f"  {path}" for path in FILES)]
    assert "fleet up" in said
    assert "source .env.subagent-fleet && claude" in said
    head, body = front(scratch, "planner")
    assert head == {
        "name": "planner",
        "description": "Use for planning.",
        "model": "fleet-planner",
        "tools": "Read, Grep, Glob",
    }
    assert body.strip() == "You are a fast local planning agent."
    assert (scratch.repo / ".claude/agents/planner.md").read_text().startswith("---\n# Generated")


def test_what_to_run_next_names_no_file_that_is_not_there(scratch):
    said = scratch("generate", "--claude-only")
    steps = [line.partition("#")[0].strip() for line in said.partition("Next:\n")[2].splitlines()]
    assert [step for step in steps if step] == [
        "fleet generate --target claude --target env",
        "source .env.subagent-fleet && claude",
    ]
    scratch("generate", "--target", "claude", "--target", "env")
    assert (scratch.repo / ".env.subagent-fleet").is_file()


def test_without_a_model_nothing_leads_to_a_gateway_that_cannot_run(tmp_path):
    scratch = Scratch(tmp_path)
    (scratch.repo / "fleet.yaml").write_text(
        "agents: {reviewer: {coder: claude, description: Reviews., prompt: Review.}}\n"
    )
    said = scratch("generate")
    assert "fleet up" not in said
    assert "source" not in said
    assert said.partition("Next:\n")[2].strip().startswith("claude ")


def test_the_environment_alone_still_leads_opencode_to_its_file(scratch):
    scratch("generate", "--target", "opencode", "--target", "env")
    held = (scratch.repo / ".env.subagent-fleet").read_text()
    assert "OPENCODE_CONFIG" in held
    scratch("generate", "--target", "env")
    assert (scratch.repo / ".env.subagent-fleet").read_text() == held


@pytest.mark.parametrize("name", [".claude", ".fleet"])
def test_a_file_where_a_folder_is_needed_is_named(scratch, name):
    (scratch.repo / name).write_text("mine")
    said = scratch.fails("generate", "--force", status=1)
    assert f"{name} is a file, where a folder is needed" in said
    assert not (scratch.repo / "litellm_config.yaml").exists()
    assert (scratch.repo / name).read_text() == "mine"


@pytest.mark.parametrize("leads", ["../outside.txt", "{root}/outside.txt"])
def test_a_record_that_leads_out_of_the_project_removes_nothing_there(scratch, tmp_path, leads):
    outside = tmp_path / "outside.txt"
    outside.write_text("precious")
    record = scratch.repo / ".fleet" / "generated.json"
    record.parent.mkdir()
    held = {"target": "claude", "hashes": [hashlib.sha256(b"precious").hexdigest()]}
    record.write_text(json.dumps({"fleet": 1, "files": {leads.format(root=tmp_path): held}}))
    for words in (("clean", "--yes"), ("generate",)):
        assert "is not a record of generated files" in scratch.fails(*words, status=1)
    assert outside.read_text() == "precious"


def test_a_folder_in_place_of_what_we_wrote_is_left(scratch):
    scratch("generate")
    path = scratch.repo / ".claude/agents/planner.md"
    path.unlink()
    path.mkdir()
    scratch("clean", "--yes")
    assert path.is_dir()


def test_the_gateway_knows_each_name_once(scratch):
    """LiteLLM would choose between two of them by chance."""
    text = SEEDED.replace("litellm_alias: claude-sonnet-local", "litellm_alias: fleet-planner")
    (scratch.repo / "fleet.yaml").write_text(text)
    assert "'fleet-planner' is the name of the agent planner at the gateway" in scratch("validate")
    scratch("generate", "--litellm-only")
    config = yaml.safe_load((scratch.repo / "litellm_config.yaml").read_text())
    names = [each["model_name"] for each in config["model_list"]]
    assert len(names) == len(set(names))
    [planner] = [d for d in config["model_list"] if d["model_name"] == "fleet-planner"]
    assert planner["litellm_params"]["api_base"].endswith("/a/planner/m/small-coder")


def test_next_steps_fit_a_terminal_as_far_as_they_can(scratch):
    said = scratch("generate", "--target", "env", "--target", "codex", "--target", "opencode")
    wide = [line for line in said.splitlines() if len(line) > 80]
    assert [line.partition(" && ")[2][:6] for line in wide] == ["ln -sf"]


def test_an_agent_without_a_prompt_gets_the_one_of_its_role(scratch):
    scratch("generate")
    assert "You make the change that was asked for" in front(scratch, "implementer")[1]


@pytest.mark.parametrize("target", ["claude", "codex", "opencode"])
def test_an_agent_that_is_a_command_becomes_no_agent_of_a_program(scratch, target):
    mine = "  mine: {coder: command, command: [my-agent, '{prompt}'], tools: [Zap]}\n"
    (scratch.repo / "fleet.yaml").write_text(SEEDED + mine)
    said = scratch.type("generate", "--target", target)
    assert said.returncode == 0
    assert "Zap" not in said.stderr
    assert list(scratch.repo.glob(".*/agent*/planner.*"))
    assert not list(scratch.repo.glob(".*/agent*/mine.*"))


def test_a_tool_that_the_program_does_not_have_is_left_out_and_named(scratch):
    said = scratch.type("generate").stderr
    assert "no tool MultiEdit: implementer gets Read, Edit, Bash" in said
    assert front(scratch, "implementer")[0]["tools"] == "Read, Edit, Bash"


def test_the_gateway_knows_every_name_and_nothing_but_the_relay(scratch):
    scratch("generate", "--litellm-only")
    config = yaml.safe_load((scratch.repo / "litellm_config.yaml").read_text())
    params = {d["model_name"]: d["litellm_params"] for d in config["model_list"]}
    assert {"heavy-coder", "claude-sonnet-local", "fleet-planner", "claude-*"} <= set(params)
    assert params["fleet-planner"]["model"] == "ollama_chat/qwen2.5-coder:7b"
    assert params["fleet-planner"]["api_base"] == "http://127.0.0.1:4001/a/planner/m/small-coder"
    assert params["claude-sonnet-local"]["num_ctx"] == 32768
    assert config["general_settings"]["master_key"] == "os.environ/LITELLM_MASTER_KEY"
    assert config["router_settings"]["num_retries"] == 0
    larger = config["router_settings"]["context_window_fallbacks"]
    assert {"fleet-planner": ["claude-sonnet-local"]} in larger
    assert not (scratch.repo / ".claude").exists()


def test_the_environment_has_the_key_by_reference(scratch):
    scratch("generate")
    file = scratch.repo / ".env.subagent-fleet"
    assert file.stat().st_mode & 0o777 == 0o600
    key = (scratch.home / "gateway.key").read_text().strip()
    assert key not in file.read_text()
    assert (scratch.home / "gateway.key").stat().st_mode & 0o777 == 0o600
    script = f". ./{file.name}; echo $ANTHROPIC_AUTH_TOKEN $ANTHROPIC_BASE_URL $ANTHROPIC_MODEL"
    assert shell(scratch, script) == f"{key} http://127.0.0.1:4000 claude-sonnet-local"
    assert shell(scratch, script, LITELLM_MASTER_KEY="sk-mine").startswith("sk-mine ")


def shell(scratch, script, **env):
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=scratch.repo,
        env=scratch.env | env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("text", AWKWARD)
def test_any_description_and_prompt_come_back_as_they_were(scratch, text):
    given = yaml.safe_load(SEEDED)
    given["agents"]["planner"] |= {"description": text.replace("\n", " "), "prompt": text}
    (scratch.repo / "fleet.yaml").write_text(yaml.safe_dump(given, allow_unicode=True))
    scratch("generate", "-t", "claude", "-t", "codex", "-t", "opencode")
    head, body = front(scratch, "planner")
    assert head["description"] == text.replace("\n", " ")
    assert body.removeprefix("\n").removesuffix("\n") == text
    codex = tomllib.loads((scratch.repo / ".codex/agents/planner.toml").read_text())
    assert codex["developer_instructions"] == text
    assert codex["model"] == "fleet-planner"


@pytest.mark.parametrize("text", [*AWKWARD, *map(chr, (0, 8, 0x80, 0xFEFF, 0x2029, 0x1F600))])
def test_quoted_text_is_read_back_by_yaml_toml_and_json(text):
    assert yaml.safe_load(quoted(text)) == text
    assert tomllib.loads(f"a = {quoted(text)}")["a"] == text
    assert json.loads(quoted(text)) == text


def test_twice_changes_nothing(scratch):
    scratch("generate")
    before = {path: (scratch.repo / path).stat().st_mtime_ns for path in FILES}
    assert "Unchanged: 4 files." in scratch("generate")
    assert {path: (scratch.repo / path).stat().st_mtime_ns for path in FILES} == before


def test_an_edited_file_is_not_written_over_and_then_nothing_is(scratch):
    scratch("generate")
    mine = scratch.repo / ".claude/agents/planner.md"
    mine.write_text("mine")
    text = (scratch.repo / "fleet.yaml").read_text().replace("Use for implementation.", "Other.")
    (scratch.repo / "fleet.yaml").write_text(text.replace("fast local", "slow local"))
    said = scratch.fails("generate", status=1)
    assert "Edited since they were generated: .claude/agents/planner.md." in said
    assert "--force" in said
    assert mine.read_text() == "mine"
    assert "Other." not in (scratch.repo / ".claude/agents/implementer.md").read_text()
    assert "+You are a slow local planning agent." in scratch("generate", "--diff")
    scratch("generate", "--force")
    assert "slow local" in mine.read_text()


def test_a_file_of_somebody_else_is_not_written_over(scratch):
    (scratch.repo / "litellm_config.yaml").write_text("mine: true\n")
    said = scratch.fails("generate", status=1)
    assert "Not generated by fleet: litellm_config.yaml." in said
    assert (scratch.repo / "litellm_config.yaml").read_text() == "mine: true\n"
    assert not (scratch.repo / ".claude").exists()


def test_an_agent_that_is_gone_is_pruned_and_a_hand_written_one_stays(scratch):
    scratch("generate")
    (scratch.repo / ".claude/agents/own.md").write_text("my own")
    given = yaml.safe_load(SEEDED)
    del given["agents"]["planner"]
    (scratch.repo / "fleet.yaml").write_text(yaml.safe_dump(given))
    assert "Removed:\n  .claude/agents/planner.md" in scratch("generate")
    assert not (scratch.repo / ".claude/agents/planner.md").exists()
    assert (scratch.repo / ".claude/agents/own.md").exists()


def test_the_last_agent_of_a_coder_is_pruned_too(scratch):
    given = yaml.safe_load(SEEDED)
    last = next(iter(given["agents"]))
    given["agents"]["helper"] = {**given["agents"][last], "coder": "opencode"}
    (scratch.repo / "fleet.yaml").write_text(yaml.safe_dump(given))
    scratch("generate")
    assert (scratch.repo / ".opencode/agent/helper.md").exists()
    del given["agents"]["helper"]
    (scratch.repo / "fleet.yaml").write_text(yaml.safe_dump(given))
    assert ".opencode/agent/helper.md" in scratch("generate")
    assert not (scratch.repo / ".opencode/agent/helper.md").exists()


def test_a_target_that_was_asked_for_by_name_stays(scratch):
    scratch("generate", "--target", "opencode")
    before = sorted((scratch.repo / ".opencode").rglob("*.md"))
    assert before
    scratch("generate")
    assert sorted((scratch.repo / ".opencode").rglob("*.md")) == before


def test_a_dry_run_writes_nothing(scratch):
    assert "Would generate:" in scratch("generate", "--dry-run")
    assert not (scratch.repo / "litellm_config.yaml").exists()
    assert not (scratch.home / "gateway.key").exists()


def test_clean_lists_then_removes_what_we_wrote_and_nobody_edited(scratch):
    scratch("generate")
    (scratch.repo / ".claude/agents/planner.md").write_text("mine")
    assert "  litellm_config.yaml" in scratch("clean")
    assert (scratch.repo / "litellm_config.yaml").exists()
    said = scratch("clean", "--force")
    assert "Edited since they were generated, so kept: .claude/agents/planner.md." in said
    assert not (scratch.repo / "litellm_config.yaml").exists()
    assert (scratch.repo / ".claude/agents/planner.md").read_text() == "mine"
    (scratch.repo / ".claude/agents/planner.md").unlink()
    assert "There are no generated files to remove." in scratch("clean", "--yes")


def test_somewhere_else(scratch, tmp_path):
    scratch("generate", "--out", str(tmp_path / "there"), "--claude-only")
    assert (tmp_path / "there/.claude/agents/planner.md").exists()
    assert not (scratch.repo / ".claude").exists()


def test_a_directory_that_cannot_be_made_is_named(scratch, tmp_path):
    (tmp_path / "taken").write_text("")
    for words in (("generate",), ("skills", "install"), ("plugins", "install")):
        said = scratch.fails(*words, "--out", str(tmp_path / "taken" / "below"), status=3)
        assert f"The directory {tmp_path}/taken/below cannot be made: Not a directory." in said
        assert "--out DIR" in said


def test_what_an_agent_is_told_and_may_do_is_said_in_each_programs_own_way(scratch):
    given = yaml.safe_load(SEEDED)
    given["agents"]["pilot"] = {"coder": "codex", "model": "heavy-coder", "prompt": "You fly."}
    given["agents"]["pilot"] |= {"description": "Flies.", "permissions": "read"}
    given["agents"]["pair"] = {"coder": "aider", "model": "small-coder", "prompt": "You sit."}
    given["agents"]["pair"] |= {"description": "Sits."}
    (scratch.repo / "fleet.yaml").write_text(yaml.safe_dump(given))
    said = scratch.type("generate", "-t", "codex", "-t", "opencode", "-t", "aider")
    profile = tomllib.loads((scratch.repo / ".codex/fleet.config.toml").read_text())
    assert (profile["model"], profile["developer_instructions"]) == ("fleet-pilot", "You fly.")
    assert profile["sandbox_mode"] == "read-only"
    assert (
        "Codex starts an agent in its own sandbox, so pilot may write" in said.stdout + said.stderr
    )
    aider = yaml.safe_load((scratch.repo / ".aider.conf.yml").read_text())
    assert aider["model"] == "openai/fleet-pair"
    assert [(scratch.repo / file).read_text() for file in aider["read"]] == ["You sit.\n"]
    _, head, _ = (scratch.repo / ".opencode/agent/planner.md").read_text().split("---\n", 2)
    denied = yaml.safe_load(head)["permission"]
    assert set(denied.values()) == {"deny"}
    assert {"bash", "edit", "task", "webfetch"} <= denied.keys()
    assert not {"read", "grep", "glob"} & denied.keys()


def test_what_the_other_coders_read_names_the_agents_models_and_limits(scratch):
    scratch("generate", "-t", "codex", "-t", "opencode", "-t", "aider", "-t", "env")
    profile = tomllib.loads((scratch.repo / ".codex/fleet.config.toml").read_text())
    assert profile["model_providers"]["fleet"]["base_url"] == "http://127.0.0.1:4000/v1"
    assert profile["model_context_window"] == 32768
    config = json.loads((scratch.repo / ".opencode/fleet.json").read_text())
    models = config["provider"]["fleet"]["models"]
    assert models["fleet-planner"]["limit"]["context"] == 8192
    assert (
        f"export OPENCODE_CONFIG={scratch.repo}/.opencode/fleet.json"
        in (scratch.repo / ".env.subagent-fleet").read_text()
    )
    aider = yaml.safe_load((scratch.repo / ".aider.conf.yml").read_text())
    assert aider["model"] == "openai/claude-sonnet-local"
    limits = json.loads((scratch.repo / ".aider.model.metadata.json").read_text())
    assert limits["openai/fleet-planner"]["max_input_tokens"] == 8192


def test_settings_that_are_withheld_are_named_by_the_command_that_would_use_them(scratch):
    fleet = scratch.repo / "fleet.yaml"
    fleet.write_text(fleet.read_text() + "\ngateway: {master_key_env: MY_SECRET}\n")
    done = scratch.type("generate", "--dry-run")
    assert done.stderr.count("not trusted, so without effect: project.gateway.master_key_env") == 1
    assert "fleet trust" in done.stderr
