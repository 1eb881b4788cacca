"""What is valid and will not work well: said by `fleet validate`, and by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.config.problems import Problem
from fleet.domain.tools import INSTEAD, granted, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.config.loader import Loaded
    from fleet.config.problems import Place
    from fleet.domain.fleet import Model

# Tokens of a program's first request, as it was measured: its instructions and tools alone.
FIRST_REQUEST = {"claude": (20_000, "Claude Code")}
ANSWER = 4096  # tokens that an answer needs beside it
ENOUGH = 32_768


def advice(loaded: Loaded) -> list[str]:
    return [str(problem) for problem in (*_contexts(loaded), *_tools(loaded))]


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
        message = (
            f"{model.context} tokens are too few for {program}, which begins with about {first}: "
            f"they do for {', '.join(agents)} as a subagent, not for a conversation of its own. "
            f"Serve it with {ENOUGH} or more."
        )
        yield Problem(_place(loaded, path), path, message)


def _tools(loaded: Loaded) -> Iterator[Problem]:
    for agent in loaded.fleet.agents.values():
        missing = unknown(agent.coder, agent.tools)
        if not missing:
            continue
        path = f"agents.{agent.name}.tools"
        will = ", ".join(granted(agent.coder, agent.tools)) or "none of them"
        instead = [f"{INSTEAD[tool]} does what {tool} did" for tool in missing if tool in INSTEAD]
        more = f" {'; '.join(instead)}." if instead else ""
        message = (
            f"{agent.coder} has no {' and no '.join(missing)}, and says nothing of it. "
            f"It will grant {will}.{more}"
        )
        yield Problem(_place(loaded, path), path, message)


def _place(loaded: Loaded, path: str) -> Place:
    """Where it is written, or where the entry is that leaves it to its default."""
    head = path.rpartition(".")[0]
    found = [loaded.origins[path]] if path in loaded.origins else []
    found += [origin for name, origin in loaded.origins.items() if name.startswith(f"{head}.")]
    return next((o.place for o in found if o.place.line), found[0].place)
