"""Call `domain.causes.decide` with everything it depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain import causes
from fleet.domain.causes import Caused, CauseRules, Declared, Effects
from fleet.domain.errors import FleetError
from fleet.operations.shared.choice import choose_for

if TYPE_CHECKING:
    from fleet.domain.routes import Traits
    from fleet.domain.task import Spec, Task
    from fleet.operations.catalogue import Context


def decide(
    context: Context,
    project: str,
    spec: Spec,
    *,
    run: bool = True,
    role: str = "",
    depth: int = 0,
    traits: Traits | None = None,
) -> tuple[Caused, int]:
    """The decision on a task that the actor adds or rewords, and the task's depth.

    Raise unless the actor may cause it. `depth`: as the request names it. `traits`: what routes look
    at to choose its agent.
    """
    own = own_task(context)
    deep = causes.depth_of(own, depth)
    directories = tuple(dict.fromkeys(d for d in (project, spec.cwd) if d))
    effects = Effects(spec, run, directories, role, deep, traits)
    rules = CauseRules(
        lambda: context.world("").settings.max_depth,
        lambda directory: context.offers(context, directory),
        lambda: _declared(context, project),
    )
    return causes.decide(context.actor, effects, rules, own=own), deep


def check_directory(context: Context, directory: str) -> None:
    """Raise unless the actor may have agents work in this directory; call it before reading there."""
    causes.check_directories(
        cause_of(context), (directory,), lambda named: context.offers(context, named)
    )


def may_name(context: Context, directory: str) -> bool:
    """Whether the actor may name this directory, so that Fleet reads files there."""
    return cause_of(context) in causes.ANYTHING or context.offers(context, directory)


def cause_of(context: Context) -> str:
    return causes.cause_of(context.actor, own_task(context))


def own_task(context: Context) -> Task | None:
    """The task of the actor's run; None for a person."""
    return context.store.task(context.run.task) if context.run else None


def may_speak(context: Context, task: Task) -> bool:
    """Whether the actor may put words into the conversation of the task's agent."""
    by = cause_of(context)
    if by in causes.ANYTHING:
        return True
    try:
        coder = choose_for(context.world(task.project), task).coder
    except FleetError:  # its project's settings are wrong, so it cannot start
        coder = task.choice.coder if task.choice else task.spec.coder or task.spec.agent
    return causes.may_speak(by, coder, program=_is_program(context))


def _declared(context: Context, project: str) -> Declared:
    world = context.world(project)
    return Declared(world.fleet, world.settings.coder, _is_program(context))


def _is_program(context: Context) -> bool:
    return context.world("").settings.coder in causes.PROGRAMS


def from_ticket(context: Context, task: Task) -> Task:
    """The task made from a ticket. Raise unless its agent may be given words of a stranger."""
    declared = _declared(context, task.project)
    chosen = task.choice.agent if task.choice else task.spec.agent or task.spec.coder
    agent = declared.fleet.agent(chosen or declared.default)
    if task.spec.coder and task.spec.coder != agent.coder:
        agent = agent._replace(coder=task.spec.coder)
    return causes.from_ticket(task, context.actor, agent, program=declared.program)
