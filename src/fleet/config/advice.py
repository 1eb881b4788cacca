"""What is valid and will not work well: said by `fleet validate`, and by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.config.files.problems import Problem
from fleet.domain.coder_tools import INSTEAD, UNHEEDED, granted, unknown
from fleet.domain.fleet import alias_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.config.files.problems import Place
    from fleet.config.loader import Loaded
    from fleet.domain.fleet import Model

# Tokens of a program's first request, as it was measured: its instructions and tools alone.
FIRST_REQUEST = {
    "claude": (20_000, "Claude Code"),
    "codex": (10_000, "Codex"),
    "opencode": (8_000, "OpenCode"),
    "aider": (1_200, "Aider"),
}
ANSWER = 4096  # tokens that an answer needs beside it
ENOUGH, ENOUGH_WITHOUT_TOOLS = 32_768, 8192


def advice(loaded: Loaded) -> list[str]:
    found = (*_contexts(loaded), *_tools(loaded), *_names(loaded))
    return [str(problem) for problem in found]


def _contexts(loaded: Loaded) -> Iterator[Problem]:
    """A model that is too small for a program that an agent drives with it."""
    fleet = loaded.fleet
    short: dict[tuple[Model, str], list[str]] = {}
    for agent in (*fleet.agents.values(), *fleet.coders.values()):
        first, _ = FIRST_REQUEST.get(agent.coder, (0, ""))
        if agent.model is not None and first and agent.model.context < first + ANSWER:
            short.setdefault((agent.model, agent.coder), []).append(agent.name)
    for (model, coder), agents in short.items():
        first, program = FIRST_REQUEST[coder]
        path = f"models.{model.name}.context"
        enough = ENOUGH_WITHOUT_TOOLS if coder == "aider" else ENOUGH
        names = ", ".join(agents)
        use = f"{names} cannot work with it. "
        if coder == "claude":
            use = f"they do for {names} as a subagent, not for a conversation of its own. "
        message = (
            f"{model.context} tokens are too few for {program}, which begins with about {first}: "
            f"{use}Serve it with {enough} or more."
        )
        yield Problem(_place(loaded, path), path, message)


def _tools(loaded: Loaded) -> Iterator[Problem]:
    for agent in loaded.fleet.agents.values():
        path = f"agents.{agent.name}.tools"
        if agent.tools and agent.coder in UNHEEDED:
            yield Problem(_place(loaded, path), path, f"{UNHEEDED[agent.coder]}.")
        missing = unknown(agent.coder, agent.tools)
        if not missing:
            continue
        will = ", ".join(granted(agent.coder, agent.tools)) or "none of them"
        instead = [f"{INSTEAD[tool]} does what {tool} did" for tool in missing if tool in INSTEAD]
        more = f" {'; '.join(instead)}." if instead else ""
        message = (
            f"{agent.coder} has no {' and no '.join(missing)}, and says nothing of it. "
            f"It will grant {will}.{more}"
        )
        yield Problem(_place(loaded, path), path, message)


def _names(loaded: Loaded) -> Iterator[Problem]:
    """A model that is called as an agent is at the gateway."""
    fleet = loaded.fleet
    agents = {alias_of(agent): agent for agent in fleet.agents.values() if agent.model is not None}
    for model in dict.fromkeys(fleet.models.values()):
        for name in model.names:
            if name in agents and agents[name].model is not model:
                path = f"models.{model.name}.{'node' if name == model.name else 'alias'}"
                message = (
                    f"'{name}' is the agent {agents[name].name} at the gateway: asking for it "
                )
                message += f"gives {agents[name].model_name}, and not this model."
                yield Problem(_place(loaded, path), f"models.{model.name}", message)


def _place(loaded: Loaded, path: str) -> Place:
    """Where it is written, or where the entry is that leaves it to its default."""
    head = path.rpartition(".")[0]
    found = [loaded.origins[path]] if path in loaded.origins else []
    found += [origin for name, origin in loaded.origins.items() if name.startswith(f"{head}.")]
    return next((o.place for o in found if o.place.line), found[0].place)
