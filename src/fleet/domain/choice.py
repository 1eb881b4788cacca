"""Which agent, coder and model a task gets: as it asks for, as a route says, or the settings."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from fleet.domain.data import dataclass
from fleet.domain.errors import Refused
from fleet.domain.fleet import narrow_name, url_of
from fleet.domain.run import Choice
from fleet.domain.schedule import GATEWAY, Slot, on_host

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.fleet import Agent, Fleet, Serving
    from fleet.domain.routes import RouteRule
    from fleet.domain.task import Spec, Task

DEFAULT = "default"  # as an agent's name: the supervisor's default when the task starts
OWN_WAY = frozenset(
    {"acp", "command", "scripted"}
)  # coders that may reach models without our gateway
LOOPBACK = r"[a-z]+://(?:[^@/]*@)?(?:localhost|127\.[\d.]+|\[::1\])(?:[:/]|$)"
NEVER = "/never"  # appended to the address of a gateway that was never started
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Defaults:
    """The default coder and its model; with another coder, that coder's own default model is used."""

    coder: str
    model: str = ""


def choose(
    spec: Spec, fleet: Fleet, defaults: Defaults, route: RouteRule | None = None
) -> tuple[Agent, Choice]:
    """Choose the agent, coder and model of a task. `route`: the rule that matched it, if any.

    Raise `NotFound` when the task names an agent or a coder that does not exist, and `Refused` when
    no node that serves the model has the tags that the agent or the route needs.
    """
    if route is not None:
        from fleet.domain.routes import routed  # noqa: PLC0415  # start-up time

        spec = routed(spec, route)
    wanted = "" if waits_for_default(spec, fleet) else spec.agent
    agent = fleet.agent(wanted or spec.coder or defaults.coder)
    coder = spec.coder or agent.coder
    own = agent.model.alias if agent.model else agent.model_name
    model = spec.model or own or (defaults.model if coder == defaults.coder else "")
    model = _narrowed(model, fleet, (*agent.needs, *(route.needs if route else ())))
    return agent, Choice(agent.name, coder, model, route=route.name if route else "")


def _narrowed(name: str, fleet: Fleet, needs: tuple[str, ...]) -> str:
    """The name of the model limited to nodes with these tags; a model that is not ours is unchanged."""
    model = fleet.model(name) if needs and name else None
    if model is None:
        return name
    narrow = narrow_name(model, needs)
    if narrow not in fleet.models:
        raise Refused(
            f"No node that serves '{name}' has all the tags {', '.join(sorted(set(needs)))}.",
            fix="Add the tags to one of its nodes in fleet.yaml, or choose another model.",
            code="no_node",
        )
    return narrow


def waits_for_default(spec: Spec, fleet: Fleet) -> bool:
    """Whether the task asks for `default`, and no declared agent has that name."""
    return spec.agent == DEFAULT and DEFAULT not in fleet.agents


def frozen(task: Task) -> Choice | None:
    """The choice made when the task was added; None if it must be made when the task starts.

    That is so when none was made, or when a person has edited the spec since.
    """
    choice, spec = task.choice, task.spec
    if choice is None:
        return None
    edited = (
        (spec.agent and spec.agent != choice.agent)
        or (spec.coder and spec.coder != choice.coder)
        or (spec.model and spec.model != choice.model)
    )
    return None if edited else choice


def program_owner(choice: Choice, agent: Agent) -> str:
    """Who names the program to run: the agent, if it has a command, else the coder."""
    return f"agent:{agent.name}" if agent.command else choice.coder


def no_program(program: str) -> Refused:
    return Refused(
        f"{program} is not on the supervisor's PATH.",
        fix=f"Install {program}. If your own shell finds it: fleet run restart",
        code="no_program",
    )


def model_slots(
    choice: Choice,
    fleet: Fleet,
    down: Mapping[str, str] = NOTHING,
    hosts: Sequence[str] = ("",),
) -> tuple[Slot, ...]:
    """The slots that serve the chosen model, best first; none when the model is not one of ours.

    `down`: why a node (by its address) or one model of it (by `serving_place`) cannot be used. While
    all nodes of the model are down, its fallbacks answer, so their slots are returned as well.
    `hosts`: the machines on which the run could start; an address such as `localhost` means a
    different server on each of them.
    """
    model = fleet.model(choice.model) if choice.model else None
    if model is not None and (why := gateway_down(choice, fleet, down)):
        return (Slot(f"{GATEWAY}{url_of(fleet.gateway)}", 1, down=why),)
    slots: list[Slot] = []
    for each in model.chain if model is not None else ():
        for serving in each.servings:
            own = hosts if is_loopback(serving.node.endpoint) else ("",)
            slots += [_slot(serving, down, host) for host in own]
        if not all(slot.down for slot in slots):
            break
    return tuple(slots)


def gateway_down(choice: Choice, fleet: Fleet, down: Mapping[str, str]) -> str:
    """Why the gateway cannot be used; empty if it can, or if the coder may do without it.

    A coder in `OWN_WAY` may reach its model without a gateway that was never started.
    """
    url = url_of(fleet.gateway)
    if why := down.get(url):
        return why
    return "" if choice.coder in OWN_WAY else down.get(url + NEVER, "")


def is_loopback(endpoint: str) -> bool:
    """Whether the address, such as `localhost`, means a different server on each machine."""
    return bool(re.match(LOOPBACK, endpoint))


def slot_of(serving: Serving, host: str) -> str:
    """The name of the slots of this serving, for runs on this host."""
    own = host if is_loopback(serving.node.endpoint) else ""
    return on_host(serving_place(serving), own)


def serving_place(serving: Serving) -> str:
    """Where a model is served: `qwen2.5-coder:7b@http://box:11434`."""
    return f"{serving.upstream}@{serving.node.endpoint or serving.node.name}"


def _slot(serving: Serving, down: Mapping[str, str], host: str) -> Slot:
    node = serving.node
    where = node.endpoint or node.name
    whole = Slot(on_host(f"node {where}", host), node.max_parallel) if node.max_parallel else None
    return Slot(
        slot_of(serving, host),
        serving.slots,
        node=node.name,
        down=down.get(where) or down.get(serving_place(serving), ""),
        within=whole,
    )
