"""Which agent, coder and model a task gets: those it asks for, or those of the settings."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from fleet.domain.data import dataclass
from fleet.domain.run import Choice
from fleet.domain.schedule import Slot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.fleet import Agent, Fleet, Serving
    from fleet.domain.task import Spec, Task

DEFAULT = "default"  # as an agent: whoever the supervisor's default is when the task starts
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Defaults:
    """`model` goes with `coder` alone: another coder has a default of its own."""

    coder: str
    model: str = ""


def choose(spec: Spec, fleet: Fleet, defaults: Defaults) -> tuple[Agent, Choice]:
    """Raise `NotFound` when the task names an agent or a coder that does not exist."""
    wanted = "" if waits_for_default(spec, fleet) else spec.agent
    agent = fleet.agent(wanted or spec.coder or defaults.coder)
    coder = spec.coder or agent.coder
    own = agent.model.alias if agent.model else agent.model_name
    model = spec.model or own or (defaults.model if coder == defaults.coder else "")
    return agent, Choice(agent.name, coder, model)


def waits_for_default(spec: Spec, fleet: Fleet) -> bool:
    """Whether its agent is chosen when it starts. An agent that is declared as `default` is not."""
    return spec.agent == DEFAULT and DEFAULT not in fleet.agents


def frozen(task: Task) -> Choice | None:
    """The choice made when the task was added; None: it is made, or made again, when it starts.

    A person may have edited the spec since.
    """
    choice, spec = task.choice, task.spec
    if choice is None:
        return None
    pairs = ((spec.agent, choice.agent), (spec.coder, choice.coder), (spec.model, choice.model))
    return choice if all(wanted in {"", was} for wanted, was in pairs) else None


def model_slots(
    choice: Choice, fleet: Fleet, down: Mapping[str, str] = NOTHING
) -> tuple[Slot, ...]:
    """The slots that serve its model, best first; none when the coder has a model of its own.

    `down`: why a node cannot be used now, by its address.
    """
    model = fleet.model(choice.model) if choice.model else None
    if model is None:
        return ()
    return tuple(_slot(serving, down) for serving in model.servings)


def _slot(serving: Serving, down: Mapping[str, str]) -> Slot:
    node = serving.node
    where = node.endpoint or node.name
    whole = Slot(f"node {where}", node.max_parallel) if node.max_parallel else None
    return Slot(
        f"{serving.upstream}@{where}",
        serving.slots,
        node=node.name,
        down=down.get(where, ""),
        within=whole,
    )
