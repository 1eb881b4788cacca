"""Who does a task: the agent, coder and model that it asks for, or those of its project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.choice import Defaults, choose

if TYPE_CHECKING:
    from fleet.domain.fleet import Agent
    from fleet.domain.run import Choice
    from fleet.domain.task import Spec
    from fleet.ports import Chosen, World


def choose_in(world: World[Chosen], spec: Spec, *, coder: str = "") -> tuple[Agent, Choice]:
    """`coder`: that of `fleet run --coder`, which outranks the settings. Raise `NotFound`."""
    defaults = Defaults(coder or world.settings.coder, world.settings.model)
    return choose(spec, world.fleet, defaults)
