"""The real programs, the real LiteLLM and the relay: what a node receives is what was declared."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
from pathlib import Path
from typing import Any

import pytest

from fleet.adapters.coders.claude.files import TOOLS
from fleet.testing.model_server import call, say
from tests.real.gateway_world import (
    BUILD,
    FAR,
    FLY,
    HEAVY,
    PLAN,
    REVIEW,
    SIT,
    SMALL,
    THIRD,
    GatewayWorld,
)
from tests.wait import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.xdist_group("litellm")]

LINK = 'ln -sf "$PWD/.codex/fleet.config.toml" "${CODEX_HOME:-$HOME/.codex}/"'
CODEX = f"{LINK} && codex exec --profile fleet 'Have it reviewed.'"
AIDER = (
    'OPENAI_API_KEY="$LITELLM_MASTER_KEY" aider --yes-always --no-check-update '
    "--analytics-disable --no-show-release-notes --message 'Greet the fleet.' hello.txt"
)
HEARTBEAT = ": ping"


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with GatewayWorld(tmp_path_factory.mktemp("gateway")) as world:
        yield world


@pytest.fixture
def world(started):
    started.forget()
    return started


def test_claude_code_starts_an_agent_with_its_own_model_tools_and_prompt(world):
    world.script = lambda asked: (
        say("It is planned.")
        if asked.results
        else call("Agent", description="Plan", prompt="Plan the shop.", subagent_type="planner")
    )
    assert "It is planned." in world.type("claude", "-p", "Have it planned.")
    (planner,) = world.heard("small")
    assert planner.model == SMALL
    assert PLAN in planner.words
    assert planner.tools == set(TOOLS.granted(["Read", "Grep", "Glob"]))
    main = world.heard("heavy")[0]
    assert main.model == HEAVY
    assert PLAN not in main.words
    session = world.data("trace")[-1]["session"]
    assert session in {t["session"] for t in world.data("trace", "--agent", "planner")}


def test_claude_code_is_an_agent_itself(world):
    world.type("claude", "--agent", "implementer", "-p", "Build it.")
    world.type("claude", "--agent", "reviewer", "-p", "Review it.")
    (implementer,) = world.heard("heavy")
    (reviewer,) = world.heard("laptop", "tower")
    assert (implementer.model, reviewer.model) == (HEAVY, THIRD)
    assert BUILD in implementer.words
    assert REVIEW in reviewer.words
    assert implementer.tools == set(TOOLS.granted(["Read", "Edit", "Write", "Bash"]))
    assert reviewer.tools == set(TOOLS.granted(["Read", "Grep", "Bash"])) == {"Read", "Bash"}


def test_codex_is_the_agent_of_its_profile_and_starts_another(world):
    def script(asked):
        if not asked.results:
            name = "multi_agent_v1__spawn_agent"
            return call(name, agent_type="reviewer", message="Review the shop.")
        if len(asked.results) == 1:
            (started,) = map(json.loads, asked.results)
            name = "multi_agent_v1__wait_agent"
            return call(name, targets=[started["agent_id"]], timeout_ms=30_000)
        return say("It is reviewed.")

    world.script = script
    assert "It is reviewed." in world.type("bash", "-c", CODEX)
    pilot = world.heard("heavy")[0]
    assert (pilot.model, FLY in pilot.words) == (HEAVY, True)
    assert "exec_command" in pilot.tools  # it takes no names of tools from us
    (reviewer,) = world.heard("laptop", "tower")
    assert (reviewer.model, REVIEW in reviewer.words) == (THIRD, True)
    assert {t["agent"] for t in world.data("trace")[-4:]} == {"pilot", "reviewer"}


@pytest.mark.parametrize(
    ("agent", "nodes", "model", "prompt", "tools"),
    [
        ("planner", ("small",), SMALL, PLAN, {"read", "grep", "glob"}),
        ("implementer", ("heavy",), HEAVY, BUILD, {"read", "edit", "write", "bash"}),
        ("reviewer", ("laptop", "tower"), THIRD, REVIEW, {"read", "grep"}),  # it may only read
    ],
)
def test_opencode_is_an_agent(world, agent, nodes, model, prompt, tools):
    world.type("opencode", "run", "--agent", agent, "Do it.")
    (heard,) = world.heard(*nodes)
    assert (heard.model, heard.tools) == (model, tools)
    assert prompt in heard.words
    assert [t["agent"] for t in world.data("trace", "--agent", agent)][-1:] == [agent]


def test_aider_reads_the_prompt_of_its_agent(world):
    world.type("bash", "-c", AIDER)
    heard = [seen.body for seen in world.small.asked("/api/chat")]
    assert {body["model"] for body in heard} == {SMALL}
    assert SIT in json.dumps(heard[0]["messages"])
    assert [t["agent"] for t in world.data("trace")][-1] == "pair"


def test_a_task_of_the_queue_is_answered_by_the_node_of_its_agent(world):
    assert "LITELLM_MASTER_KEY" not in world.env  # the key is in its file alone
    task = world.data("add", "Plan the shop", "--agent", "planner", "--prompt", "Plan it.")["id"]
    world.fleet("run", "--once")
    shown = world.data("show", task)
    assert shown["task"]["status"] == "done", world.fleet("logs", task, "--raw")
    (heard,) = world.heard("small")
    assert (heard.model, PLAN in heard.words) == (SMALL, True)
    own = {
        tool for tool in heard.tools if not tool.startswith("mcp__fleet__")
    }  # every run has those
    assert own == set(TOOLS.granted(["Read", "Grep", "Glob"]))
    assert world.data("trace")[-1]["agent"] == "planner"


@pytest.mark.parametrize(
    ("agent", "coder", "model"),
    [
        ("planner", "claude", "claude-sonnet-local"),
        ("pilot", "codex", "claude-haiku-local"),
        ("planner", "opencode", "claude-sonnet-local"),
    ],
)
def test_a_task_with_another_model_than_its_agents_is_still_its_agents(world, agent, coder, model):
    before = len(world.data("trace"))
    words = ("--agent", agent, "--coder", coder, "--model", model, "--prompt", "Do it.")
    task = world.data("add", "Do it", *words)["id"]
    world.fleet("run", "--once")
    assert world.data("show", task)["task"]["status"] == "done", world.fleet("logs", task, "--raw")
    assert {t["agent"] for t in world.data("trace")[before:]} == {agent}


def test_when_a_node_is_killed_nobody_sees_an_error(world):
    for node in (world.laptop, world.tower):
        node.set(prefill=8)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(world.ask("pair")))
    asking.start()
    world.laptop.until(lambda _: world.laptop.busy or world.tower.busy)
    killed, other = world.laptop, world.tower
    if world.tower.busy:
        killed, other = other, killed
    killed.set(refuse=True)
    other.set(prefill=0)
    asking.join(60)
    assert answers[0]["choices"]
    assert len(other.asked("/api/chat")) == 1
    other.set(refuse=True)
    assert world.ask("fleet-reviewer")["choices"]
    assert len(world.small.asked("/api/chat")) == 1  # the model's fallback


def test_a_fallback_of_another_wire_answers_too(world):
    assert world.ask("rack-coder")["choices"]
    assert world.heard("rack")[0].model == FAR
    world.rack.set(refuse=True)
    assert world.ask("rack-coder")["choices"]
    assert world.heard("small")[0].model == SMALL


def test_when_no_node_is_left_a_503_says_which_are_down(world):
    for node in (world.laptop, world.tower, world.small):
        node.set(refuse=True)
    body = {"model": "pair", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
    for path in ("/v1/chat/completions", "/v1/messages"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            world.open(path, body)
        assert refused.value.code == 503
        said = refused.value.read().decode()
        assert "No node can answer for 'pair-coder': laptop is down (connection refused)" in said


def test_what_the_gateway_refuses_itself_is_in_the_traces_without_the_prompt(world):
    words = [{"role": "user", "content": "a secret word " * 40_000}]
    long = {"model": "pair", "max_tokens": 9, "messages": words}
    refused = [
        (long, {}),
        (long | {"model": "nobody"}, {}),
        (long | {"model": "fleet-planner"}, {"authorization": "Bearer sk-no"}),
    ]
    for body, headers in refused:
        with pytest.raises(urllib.error.HTTPError):
            world.open("/v1/chat/completions", body, **headers)

    def refusals() -> list[dict[str, Any]]:
        traces = json.loads(world.fleet("trace", "--json"))["data"]
        return [trace for trace in traces if trace["wire"] == "gateway"]

    until(lambda: len(refusals()) == 3, lambda: str(refusals()))
    traces = refusals()
    assert [trace["error"] for trace in traces] == [
        "The gateway refused it: the prompt is too long for the context of pair.",
        "The gateway refused it: it knows no model 'nobody'.",
        "The gateway refused it: the key is wrong or missing.",
    ]
    assert [trace["status"] for trace in traces] == [400, 400, 401]
    assert all(Path(trace["project"]) == world.repo for trace in traces)
    assert traces[-1]["agent"] == "planner"  # by which the supervisor knows whose fault its end was
    assert "secret word" not in (world.place / "fleet/logs/traces.jsonl").read_text()


def test_when_a_node_dies_in_its_reply_the_client_is_told_which_and_why(world):
    """On Ollama's wire; a 400 would blame the request, and nobody would ask again."""
    said = [{"role": "user", "content": "Hello"}]
    for path, body in (
        ("/v1/chat/completions", {"messages": said}),
        ("/v1/messages", {"max_tokens": 9, "messages": said}),
        ("/v1/responses", {"input": "Hello"}),
    ):
        world.forget()
        world.small.set(die=3, decode=50)
        lines: dict[str, list[str]] = {}
        _listen(world, lines, path, {"model": "claude-haiku-local", "stream": True, **body})
        told = "\n".join(lines[path])
        assert "The node 'mini-16gb' broke off in the middle of its reply" in told, path
        assert "BadRequest" not in told, path


def test_while_a_node_reads_a_long_prompt_every_client_hears_that_it_lives(world):
    """LiteLLM's `keepalive_seconds` is 10."""
    for node in (world.laptop, world.tower, world.small):
        node.set(prefill=3, output=2)
    said = [{"role": "user", "content": "word " * 25}]
    lines: dict[str, list[str]] = {}
    asking = [
        threading.Thread(target=_listen, args=(world, lines, path, {"stream": True, **body}))
        for path, body in (
            ("/v1/chat/completions", {"model": "pair", "messages": said}),
            ("/v1/messages", {"model": "pair", "max_tokens": 9, "messages": said}),
            ("/v1/responses", {"model": "claude-haiku-local", "input": "word " * 25}),
        )
    ]
    for each in asking:
        each.start()
        time.sleep(0.1)
    for each in asking:
        each.join(60)
    assert len(lines) == 3
    for path, heard in lines.items():
        assert heard[0] == HEARTBEAT, path
        assert len(heard) > 3, path


def _listen(world, lines, path, body):
    with world.open(path, body, timeout=90) as answer:
        lines[path] = [line.decode().strip() for line in answer if line.strip()]
