"""How a run's coder is started: its agent, prompt, model, environment and tools."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fleet.domain.causes import permissions_of
from fleet.domain.errors import Refused
from fleet.domain.fleet import alias_of, url_of
from fleet.domain.spending.budget import left
from fleet.domain.task import Mode
from fleet.operations.messages.remembered import known_to
from fleet.ports import Brief, InTerminal
from fleet.supervisor.attempt.environment import NO_KEYS, for_coder
from fleet.supervisor.attempt.limits import budget_of
from fleet.supervisor.attempt.prompt import compose, instructions, is_reworded, news_for, session_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.config import Settings
    from fleet.domain.event import Event
    from fleet.domain.fleet import Agent, Fleet, Gateway
    from fleet.domain.run import Choice, Run, Workspace
    from fleet.domain.task import Task
    from fleet.ports import Coder, Launch, World
    from fleet.supervisor.parts import Parts

# Variables that our MCP server gets besides FLEET_*.
PASSED = frozenset({"DATABASE_URL", "DB_PATH", "JWT_SECRET", "PATH"})
MOST_EVENTS = 200  # newest events of the task that are searched for edits since its last run
CONFIGURED = frozenset({"acp"})  # coders whose models are named in the program's own settings


def launch_of(parts: Parts, run: Run, task: Task, last: Run | None, workspace: Workspace) -> Launch:
    world = parts.world(task.project)
    agent = world.fleet.agent(run.choice.agent)
    coder = parts.coder(run.choice.coder, task.project)
    session = session_of(task, last, run) if coder.resumes else ""
    messages = parts.store.messages(task.id)
    options = options_of(agent, world.fleet, run.choice, task.project)
    options["permissions"] = permissions_of(task, agent)
    options["budget_usd"] = _dollars(task, coder, world.settings)
    gateway = gateway_of(world.fleet, run.choice)
    env = _env(parts, run, task, workspace, gateway=gateway, world=world)
    options["mcp"] = tools_of(env, world.settings)
    reworded = last is not None and is_reworded(_newest_events(parts, task), last)
    prompt = compose(
        task, last, messages, run.claimed_at, resuming=bool(session and last), reworded=reworded
    )
    if task.spec.mode == Mode.TERMINAL and not (
        task.prompt or last or news_for(messages, run.claimed_at)
    ):
        prompt = ""  # a person will type the first prompt
    if prompt and not session and (known := known_to(parts.store, task, messages)):
        prompt = f"{prompt}\n\n{known}"
    brief = Brief(
        run_id=run.id,
        prompt=prompt,
        cwd=workspace.path,
        task_dir=str(parts.task_dir(task.id)),
        model=asked_for(agent, world.fleet, run.choice),
        instructions=instructions(agent),
        session=session,
        fork=bool(session) and last is None,
        env=env,
        options=options,
    )
    reached = url_of(gateway) if gateway else ""
    if task.spec.mode != Mode.TERMINAL:
        return coder.launch(brief)._replace(gateway=reached)
    title = workspace.branch or task.title
    launched = must_run_in_terminal(coder).launch_in_terminal(brief)
    return launched._replace(title=title, gateway=reached)


def must_run_in_terminal(coder: Coder) -> InTerminal:
    """Return the coder as one that runs in a terminal. Raise `Refused` when it cannot."""
    if isinstance(coder, InTerminal):
        return coder
    raise Refused(
        f"{coder.name} cannot be run in a terminal.",
        fix="Leave the terminal out: fleet create --headless, or fleet add.",
        code="no_terminal",
    )


def _newest_events(parts: Parts, task: Task) -> list[Event]:
    return parts.store.events(task=task.id, limit=MOST_EVENTS, newest=True)


def asked_for(agent: Agent, fleet: Fleet, choice: Choice) -> str:
    """The model name that the coder asks for: an alias of the agent, so that traces name it."""
    if agent.name not in fleet.agents or agent.model is None or choice.coder in CONFIGURED:
        return choice.model
    return alias_of(agent) if fleet.model(choice.model) == agent.model else choice.model


def gateway_of(fleet: Fleet, choice: Choice) -> Gateway | None:
    """The gateway that serves the model; None when the coder reaches its own provider."""
    return fleet.gateway if choice.model and fleet.model(choice.model) else None


def _env(
    parts: Parts,
    run: Run,
    task: Task,
    workspace: Workspace,
    *,
    gateway: Gateway | None,
    world: World[Settings],
) -> dict[str, str]:
    own = parts.provider_keys(run.choice.coder) if gateway is None else NO_KEYS
    nodes = world.fleet.nodes.values()
    node_keys = {node.api_key.removeprefix("os.environ/") for node in nodes if node.api_key}
    inherited = for_coder(
        parts.env(task.id, run.id), own, passed=world.settings.run.env, node_keys=node_keys
    )
    env = {**inherited, **parts.workspace_env(task.project, workspace)}
    if gateway is not None and (key := parts.gateway_key(gateway)):
        env[gateway.master_key_env] = key
    return env


def tools_of(env: Mapping[str, str], settings: Settings) -> dict[str, object] | None:
    """How the coder reaches our MCP server: over HTTP if a server runs, else by starting one.

    None when the settings turn it off, or when the agent is isolated and no server runs: a program
    of an isolated agent cannot open the store. `-P`: the working directory may contain another
    `fleet` package.
    """
    url = env.get("FLEET_RUN_SERVER", "")
    if not settings.run.mcp or (settings.workspace.isolation != "none" and not url):
        return None
    passes = sorted(name for name in env if name.startswith("FLEET_") or name in PASSED)
    return {
        "url": url,
        "token_env": "FLEET_RUN_BEARER",
        "command": (sys.executable, "-P", "-m", "fleet", "mcp"),
        "passes": tuple(passes),
    }


def _dollars(task: Task, coder: Coder, settings: Settings) -> float:
    """The dollars that the run may still spend; 0 when there is no limit.

    Raise `Refused` when there is a limit and the coder does not report its cost.
    """
    budget = budget_of(task, settings)
    if budget.cost and not coder.costs:
        raise Refused(
            f"{coder.name} does not report its cost, so no budget in dollars can stop it.",
            fix="Give the task a budget of tokens or minutes.",
        )
    return left(budget, task.tally.spent)


def options_of(agent: Agent, fleet: Fleet, choice: Choice, project: str = "") -> dict[str, object]:
    """The agent's declared options, and the gateway when one of our nodes serves the model."""
    options: dict[str, object] = {
        "command": agent.command,
        "extra_args": agent.extra_args,
        "permissions": agent.permissions,
        "tools": agent.tools,
    }
    model = fleet.model(choice.model) if choice.model else None
    if model is not None:
        gateway = fleet.gateway
        options["gateway"] = {
            "base_url": url_of(gateway),
            "key_env": gateway.master_key_env,
            "context": model.context,
            "agent": agent.name if agent.name in fleet.agents else "",
            "project": project,
        }
    return options
