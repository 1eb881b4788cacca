"""Who does a task: the agent, coder and model that it asks for, or those of its project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.choice import Defaults, choose, frozen

if TYPE_CHECKING:
    from fleet.domain.fleet import Agent
    from fleet.domain.run import Choice
    from fleet.domain.task import Spec, Task
    from fleet.ports import Chosen, World


def choose_in(world: World[Chosen], spec: Spec, *, coder: str = "") -> tuple[Agent, Choice]:
    """`coder`: that of `fleet run --coder`, which outranks the settings. Raise `NotFound`."""
    defaults = Defaults(coder or world.settings.coder, world.settings.model)
    return choose(spec, world.fleet, defaults)


def choose_for(world: World[Chosen], task: Task, *, coder: str = "") -> Choice:
    """As it was decided when the task was added, else as the settings say now. Raise `NotFound`.

    `coder` outranks a default of the settings, and nothing that the task itself names.
    """
    choice = frozen(task)
    if choice is None or (coder and not task.spec.agent and not task.spec.coder):
        return choose_in(world, task.spec, coder=coder)[1]
    world.fleet.agent(choice.agent)
    return choice
