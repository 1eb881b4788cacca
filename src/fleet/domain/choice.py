"""Who does a task: what it asked for, else what the settings say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleet.domain.run import Choice
from fleet.domain.schedule import Slot

if TYPE_CHECKING:
    from fleet.domain.fleet import Agent, Fleet
    from fleet.domain.task import Spec


@dataclass(frozen=True, slots=True)
class Defaults:
    """`model` goes with `coder` alone: another coder has a default of its own."""

    coder: str
    model: str = ""


def choose(spec: Spec, fleet: Fleet, defaults: Defaults) -> tuple[Agent, Choice]:
    """Raise `NotFound` when the agent or coder it names does not exist."""
    agent = fleet.agent(spec.agent or spec.coder or defaults.coder)
    coder = spec.coder or agent.coder
    own = agent.model.alias if agent.model else agent.model_name
    model = spec.model or own or (defaults.model if coder == defaults.coder else "")
    return agent, Choice(agent.name, coder, model)


def model_slots(choice: Choice, fleet: Fleet) -> tuple[Slot, ...]:
    """Where its model is served, best first; nothing when the coder finds its own model."""
    model = fleet.model(choice.model) if choice.model else None
    if model is None:
        return ()
    return tuple(
        Slot(f"{s.upstream}@{s.node.endpoint or s.node.name}", s.slots, node=s.node.name)
        for s in model.servings
    )
