"""Who does a task: the agent, coder and model that it asks for, or those of its project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.choice import Defaults, choose, frozen, waits_for_default
from fleet.domain.errors import Mismatch, Refused

if TYPE_CHECKING:
    from fleet.domain.fleet import Agent
    from fleet.domain.routes import Traits
    from fleet.domain.run import Choice
    from fleet.domain.task import Spec, Task
    from fleet.ports import Chosen, World

OF_AGENTS = frozenset({"acp", "command"})  # coders for which each agent names its program


def choose_in(
    world: World[Chosen], spec: Spec, *, coder: str = "", traits: Traits | None = None
) -> tuple[Agent, Choice]:
    """Choose agent, coder and model. Raise `NotFound` when the spec names one that does not exist.

    `coder`: from `fleet run --coder`, which outranks the settings. `traits`: given when a task is added
    or edited, so that routes can choose; when a task starts, its choice is frozen and routes do not.
    """
    defaults = Defaults(coder or world.settings.coder, world.settings.model)
    if not traits:
        return choose(spec, world.fleet, defaults)
    from fleet.domain.routes import route_of  # noqa: PLC0415  # start-up time

    return choose(spec, world.fleet, defaults, route_of(spec, world.fleet, traits))


def choose_for(world: World[Chosen], task: Task, *, coder: str = "") -> Choice:
    """The choice made when the task was added, or else by the settings as they are now.

    `coder` outranks a default of the settings, but not what the task names. Raise `NotFound` when the
    agent does not exist, and `Refused` when the coder's command is not trusted.
    """
    choice = frozen(task)
    if choice is None or (coder and not task.spec.agent and not task.spec.coder):
        choice = choose_in(world, task.spec, coder=coder)[1]
    else:
        world.fleet.agent(choice.agent)
    _check_trust(choice, world)
    return choice


def _check_trust(choice: Choice, world: World[Chosen]) -> None:
    if f"coders.{choice.coder}.command" in world.withheld:
        raise Refused(
            f"The command of the coder '{choice.coder}' is not trusted.",
            fix="Read it in fleet.yaml, then run in that project: fleet trust",
            code="untrusted",
        )


def check_gate(task: Task, world: World[Chosen]) -> None:
    """Raise `Refused` when its project's gate is not trusted: nothing would check the task."""
    if "run.gate" in world.withheld and not task.spec.gate:
        raise Refused(
            "The gate of its project is not trusted, so the task could not be checked.",
            fix=f"In {task.project}: fleet trust",
            code="untrusted",
        )


def checked_choice(spec: Spec, world: World[Chosen], traits: Traits | None = None) -> Choice | None:
    """The choice for a task that is added; None when it must be made at the start.

    Raise unless the agent and the coder exist and their commands are trusted. Defaults of the settings
    are checked when the task starts. `traits`: see `choose_in`.
    """
    if spec.coder:
        world.fleet.check_coder(spec.coder)
    agent, choice = choose_in(world, spec, traits=traits)
    if choice.coder in OF_AGENTS and f"agents.{agent.name}.command" in world.withheld:
        raise Refused(
            f"The command of the agent '{agent.name}' is not trusted.",
            fix="Read it in fleet.yaml, then: fleet trust",
            code="untrusted",
        )
    is_named = bool(spec.agent or spec.coder or choice.route)
    if is_named and choice.coder == "command" and not agent.command:
        raise Mismatch(
            f"The agent '{agent.name}' has no command to run.",
            fix="Set agents.NAME.command in fleet.yaml, and give that NAME as --agent.",
        )
    return None if waits_for_default(spec, world.fleet) else choice
