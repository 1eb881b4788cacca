"""Settings that are valid but will not work well, for `fleet validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.adapters.coders import built_in, part
from fleet.config.files.problems import Problem
from fleet.domain.fleet import alias_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.adapters.coders.shared.generates import Tools
    from fleet.config.files.problems import SettingPlace
    from fleet.config.loader import Loaded
    from fleet.domain.fleet import Model

ANSWER = 4096  # tokens of context that a reply needs besides the first request
ENOUGH, ENOUGH_WITHOUT_TOOLS = 32_768, 8192


def advice(loaded: Loaded) -> list[str]:
    problems = (*_contexts(loaded), *_tools(loaded), *_names(loaded))
    return [str(problem) for problem in problems]


def least_context(coder: str) -> int:
    """Return the least context, in tokens, with which this coder works at all; 0: not known."""
    first = built_in(coder).first_request
    return first + ANSWER if first else 0


def _contexts(loaded: Loaded) -> Iterator[Problem]:
    """Report models whose context is too small for the coder of an agent that uses them."""
    fleet = loaded.fleet
    short: dict[tuple[Model, str], list[str]] = {}
    for agent in (*fleet.agents.values(), *fleet.coders.values()):
        if agent.model is not None and agent.model.context < least_context(agent.coder):
            short.setdefault((agent.model, agent.coder), []).append(agent.name)
    for (model, coder), agents in short.items():
        program = built_in(coder)
        path = f"models.{model.name}.context"
        enough = ENOUGH if program.calls_tools else ENOUGH_WITHOUT_TOOLS
        names = ", ".join(agents)
        use = f"{names} cannot work with it. "
        if program.subagents:
            use = f"enough for {names} as a subagent, but not for a conversation of its own. "
        message = (
            f"{model.context} tokens are too few for {program.title}, which begins with about "
            f"{program.first_request}: {use}Serve it with {enough} or more."
        )
        yield Problem(_origin(loaded, path), path, message)


def _tools(loaded: Loaded) -> Iterator[Problem]:
    for agent in loaded.fleet.agents.values():
        path = f"agents.{agent.name}.tools"
        if not agent.tools or not (dotted_path := built_in(agent.coder).tools):
            continue
        tools: Tools = part(dotted_path)
        if tools.unheeded:
            yield Problem(_origin(loaded, path), path, f"{tools.unheeded}.")
        missing = tools.unknown(agent.tools)
        if not missing:
            continue
        granted = ", ".join(tools.granted(agent.tools)) or "none of them"
        instead = [
            f"{successor} does what {tool} did"
            for tool, successor in tools.instead
            if tool in missing
        ]
        more = f" {'; '.join(instead)}." if instead else ""
        message = (
            f"{agent.coder} has no {' and no '.join(missing)}, and does not report that. "
            f"It will grant {granted}.{more}"
        )
        yield Problem(_origin(loaded, path), path, message)


def _names(loaded: Loaded) -> Iterator[Problem]:
    """Report models whose name an agent has at the gateway, too."""
    fleet = loaded.fleet
    agents = {alias_of(agent): agent for agent in fleet.agents.values() if agent.model is not None}
    for model in fleet.own_models:
        for name in model.names:
            if name in agents and agents[name].model is not model:
                path = f"models.{model.name}.{'node' if name == model.name else 'alias'}"
                message = f"'{name}' is the name of the agent {agents[name].name} at the gateway: requests for it "
                message += f"go to {agents[name].model_name}, not to this model."
                yield Problem(_origin(loaded, path), f"models.{model.name}", message)


def _origin(loaded: Loaded, path: str) -> SettingPlace:
    """Return where the setting is written, or else where its section is."""
    head = path.rpartition(".")[0]
    origins = [loaded.origins[path]] if path in loaded.origins else []
    origins += [origin for name, origin in loaded.origins.items() if name.startswith(f"{head}.")]
    return next((o.place for o in origins if o.place.line), origins[0].place)
