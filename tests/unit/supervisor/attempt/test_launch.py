"""By which name a run asks for its model."""

from __future__ import annotations

import pytest

from fleet.config.settings import RunSettings, Settings, WorkspaceSettings
from fleet.domain.fleet import Agent, Fleet, Model, Node, Serving
from fleet.domain.run import Choice
from fleet.supervisor.attempt.launch import asked_for, options_of, tools_of

HERE = Node("here", "ollama", "http://10.0.0.5:11434")
SMALL = Model("small", "claude-haiku-local", (Serving(HERE, "qwen:7b", 8192, 60.0, 1),))
HEAVY = Model("heavy", "claude-sonnet-local", (Serving(HERE, "qwen:32b", 8192, 60.0, 1),))
PLANNER = Agent("planner", "claude", model=SMALL)
FLEET = Fleet(
    models={"small": SMALL, "heavy": HEAVY},
    agents={"planner": PLANNER, "cloud": Agent("cloud", "claude", model_name="opus")},
    coders={"claude": Agent("claude", "claude", model=HEAVY)},
)


@pytest.mark.parametrize(
    ("agent", "coder", "model", "asked"),
    [
        ("planner", "claude", "claude-haiku-local", "fleet-planner"),
        ("planner", "codex", "small", "fleet-planner"),
        ("planner", "claude", "heavy", "heavy"),  # the task asked for another
        ("planner", "claude", "opus", "opus"),
        ("planner", "acp", "small", "small"),
        ("cloud", "claude", "opus", "opus"),
        ("claude", "claude", "claude-sonnet-local", "claude-sonnet-local"),
        ("claude", "claude", "", ""),
    ],
)
def test_an_agent_asks_for_its_own_model_by_its_own_name(agent, coder, model, asked):
    choice = Choice(agent, coder, model)
    assert asked_for(FLEET.agent(agent), FLEET, choice) == asked
    behind = "gateway" in options_of(FLEET.agent(agent), FLEET, choice)
    assert behind == (model not in {"opus", ""})


@pytest.mark.parametrize(
    ("settings", "env", "tools"),
    [
        ({}, {}, True),
        ({"workspace": WorkspaceSettings(isolation="landlock")}, {}, False),
        (
            {"workspace": WorkspaceSettings(isolation="landlock")},
            {"FLEET_RUN_SERVER": "http://127.0.0.1:1/mcp"},
            True,
        ),
        ({"run": RunSettings(mcp=False)}, {"FLEET_RUN_SERVER": "http://127.0.0.1:1/mcp"}, False),
    ],
)
def test_an_agent_that_cannot_open_the_store_has_tools_only_at_a_server(settings, env, tools):
    """Codex does not begin without tools that it was told of."""
    assert (tools_of(env, Settings(**settings)) is not None) == tools
