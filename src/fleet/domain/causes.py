"""What an actor may cause. Every request that can lead to a run is decided here.

A permission says what an actor may call. This module says what the call may lead to: whether a run,
by which agent, in which role and directory, with which commands, and how deep agents may spawn agents.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import GRANTS, Permission, Role
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, Forbidden, NotFound, Refused, nearest
from fleet.domain.fleet import PERMISSIONS, RUN_ROLES
from fleet.domain.routes import route_of, routed

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.access import Actor
    from fleet.domain.fleet import Agent, Fleet
    from fleet.domain.routes import Traits
    from fleet.domain.task import Spec, Task

HERE = ""  # the cause of requests by a person at this machine, and by agents that work for one
KINDS = {"lead": str(Role.TEAM_LEAD)}  # claude-fleet's names for some roles
PROGRAMS = frozenset({"scripted"})  # coders that execute their prompt as a program


def _granted(permission: Permission) -> frozenset[str]:
    return frozenset({HERE, *(str(role) for role in Role if permission in GRANTS[role])})


RUN = _granted(Permission.SPAWN)  # the causes that may start runs
ANYTHING = _granted(Permission.ADMIN)  # the causes that may name any coder, command and directory
WITHIN = {  # by role: the roles that its runs can have
    role: frozenset(r for r in RUN_ROLES if GRANTS[Role(r)] <= GRANTS[role]) for role in Role
}
RANKS = (HERE, *map(str, Role))  # the highest first


OUTSIDE = str(Role.TEAM_LEAD)  # the cause of a task whose words came from a ticket
PLAIN = "worker"  # the role of runs of such a task


class Declared(NamedTuple):
    """What a project declares. `default`: its default agent or coder.

    `program`: the owner of this installation made one of `PROGRAMS` the default, so everybody may use it.
    """

    fleet: Fleet
    default: str
    program: bool = False


class Effects(NamedTuple):
    """What a task would lead to. `run`: it would get runs of its own.

    `role`: of its runs, as the request names it. `depth`: how many agents are between a person and
    its runs. `traits`: what routes look at to choose its agent; None when no route is to choose.
    """

    spec: Spec
    run: bool = True
    directories: tuple[str, ...] = ()
    role: str = ""
    depth: int = 0
    traits: Traits | None = None


class CauseRules(NamedTuple):
    """What the decision depends on. `is_offered`: whether the actor's team may name a directory.

    `declared` is called last, as it reads files in a directory that the actor may have named.
    """

    max_depth: Callable[[], int]
    is_offered: Callable[[str], bool]
    declared: Callable[[], Declared]


class Caused(NamedTuple):
    """The decision. `by`: the cause, a role or `HERE`. `role`: of its runs; empty: as declared.

    `counted`: its runs count against `max_concurrent`, even in a terminal.
    """

    by: str
    role: str
    counted: bool


def cause_of(actor: Actor, own: Task | None = None) -> str:
    """The cause of what this actor asks for. `own`: the task of the actor's run.

    An agent that works for a person at this machine may do what that person may, as it has their
    shell. Any other run may cause what its role may.
    """
    if own is not None and own.caused_by == HERE:
        return HERE
    return str(actor.role) if own is not None or actor.remote else HERE


def decide(actor: Actor, effects: Effects, rules: CauseRules, *, own: Task | None = None) -> Caused:
    """Raise unless the actor may cause this; return by whom and how the task is caused.

    A task of an actor who may not start runs waits for one who may: see `is_held`.
    """
    by = cause_of(actor, own)
    if effects.run and effects.depth:
        check_depth(effects.depth, rules.max_depth())
    if by not in ANYTHING:
        _check_commands(actor, effects.spec)
        check_directories(by, effects.directories, rules.is_offered)
        declared = rules.declared()
        route = effects.traits and route_of(effects.spec, declared.fleet, effects.traits)
        _check_agent(actor, routed(effects.spec, route or None), declared)
    return Caused(by, _role(actor, effects.role), counted=by != HERE or own is not None)


def _check_commands(actor: Actor, spec: Spec) -> None:
    """Refuse a gate and work outside a worktree: either is as powerful as a shell on this machine."""
    if spec.gate or spec.in_place:
        what = "a command as its gate" if spec.gate else "work outside a worktree"
        raise Forbidden(
            f"{actor.name} is a {actor.role}, and may not ask the server for {what}.",
            fix="Ask a coordinator, or leave it out.",
            code="not_from_outside",
        )


def check_directories(by: str, named: tuple[str, ...], is_offered: Callable[[str], bool]) -> None:
    """Raise `NotFound` unless `by` may have agents work in these directories."""
    for directory in named:
        if by not in ANYTHING and not is_offered(directory):
            raise NotFound(
                f"'{directory[:100]}' is not a directory that this server offers.",
                fix="Ask a coordinator, or have it added to the setting `server.places`.",
                code="no_such_place",
            )


def _check_agent(actor: Actor, spec: Spec, declared: Declared) -> None:
    """Raise unless the task names no agent, the default, or a declared agent with its own coder."""
    fleet, name = declared.fleet, spec.agent or spec.coder or declared.default
    known = name == declared.default or name in fleet.agents
    coder = fleet.agent(name).coder if known else ""
    if not known or spec.coder not in {"", coder}:
        raise Forbidden(
            f"{actor.name} is a {actor.role}, and may only choose an agent that fleet.yaml declares,"
            f" not '{(name if not known else spec.coder)[:60]}'.",
            fix=f"Leave it out, or choose one of: {', '.join(fleet.agents)}."
            if fleet.agents
            else "Leave it out: the default agent does it.",
            code="not_declared",
        )
    _check_permissions(actor, spec, fleet.agent(name))
    if not may_speak(str(actor.role), coder, program=declared.program):
        raise Forbidden(
            f"{actor.name} is a {actor.role}, and '{coder}' executes its prompt as a program.",
            fix="Choose another agent, or ask a coordinator.",
            code="not_declared",
        )


def _check_permissions(actor: Actor, spec: Spec, agent: Agent) -> None:
    """Raise when the task asks for more permissions than its agent is declared with."""
    wanted = spec.limits.permissions
    if wanted in PERMISSIONS and PERMISSIONS.index(wanted) > PERMISSIONS.index(agent.permissions):
        raise Forbidden(
            f"{actor.name} is a {actor.role}, and may not give '{agent.name}' the permissions"
            f" '{wanted}': it has '{agent.permissions}'.",
            fix="Ask a coordinator, or leave them out.",
            code="not_from_outside",
        )


def permissions_of(task: Task, agent: Agent) -> str:
    """The permissions of the task's runs: at most the agent's, unless the cause is in `ANYTHING`."""
    wanted = task.spec.limits.permissions or agent.permissions
    if task.caused_by in ANYTHING:
        return wanted
    return min(wanted, agent.permissions, key=PERMISSIONS.index)


def from_ticket(task: Task, actor: Actor, agent: Agent, *, program: bool) -> Task:
    """The task made from a ticket, whose words somebody outside the team wrote.

    It runs with at most the declared permissions, whoever `actor` is. Raise when it asks for more, or
    when the agent would execute the words as a program.
    """
    _check_permissions(actor, task.spec, agent)
    if not may_speak(OUTSIDE, agent.coder, program=program):
        raise Forbidden(
            f"'{agent.coder}' executes its prompt as a program, and others write the tickets.",
            fix="Choose another agent.",
            code="not_declared",
        )
    return replace(reworded(task, OUTSIDE), role=PLAIN, spawned=True)


def may_speak(by: str, coder: str, *, program: bool) -> bool:
    """Whether `by` may put words into the prompt of this coder. `program`: see `Declared`."""
    return program or coder not in PROGRAMS or by in ANYTHING


def check_may_allow(actor: Actor, own: Task | None, task: str) -> None:
    """Raise unless the actor may answer an agent's permission dialog, or type in its terminal."""
    if own is not None:
        raise Forbidden(
            f"{actor.name} is an agent, and a person decides what {task} may do.",
            fix="Ask a person: fleet ask QUESTION",
            code="for_people",
        )
    if cause_of(actor) not in ANYTHING:
        raise Forbidden(
            f"{actor.name} is a {actor.role}, and may not allow what an agent asks of the person"
            " at its machine.",
            fix="Ask a coordinator. You can refuse it, and send the agent messages.",
            code="not_from_outside",
        )


def check_may_force(actor: Actor, own: Task | None, force: str) -> None:
    """Raise when an agent would land what is not done or not tested: a person answers for that."""
    if force and own is not None:
        raise Forbidden(
            f"{actor.name} is an agent, and only a person may land work untested.",
            fix="Leave the reason out, or ask a person: fleet ask QUESTION",
            code="for_people",
        )


def _role(actor: Actor, name: str) -> str:
    """The role of the runs, which may never do more than the actor.

    For an actor below some of these roles it is written down, whatever the agent's declaration says
    then or later.
    """
    role = KINDS.get(name, name)
    if role and role not in RUN_ROLES:
        fix = nearest(role, RUN_ROLES) or f"Roles: {', '.join(RUN_ROLES)}."
        raise BadInput(f"'{name[:60]}' is not a role of an agent.", fix=fix)
    if role and role not in WITHIN[actor.role]:
        raise Forbidden(
            f"{actor.name} is a {actor.role}, so its agent cannot be a {role}.",
            fix="Ask a coordinator, or leave the role out.",
        )
    if role or len(WITHIN[actor.role]) == len(RUN_ROLES):
        return role
    return str(Role.WORKER)


def depth_of(own: Task | None, named: int = 0) -> int:
    """The depth of a task that is added by the agent of the task `own`; 0 for a person (None).

    `named` is the depth that the request names; it counts only if it is larger.
    """
    return max(named, own.depth + 1 if own else 0)


def check_depth(depth: int, most: int) -> None:
    """Raise `Refused` beyond the allowed depth, so that agents cannot spawn agents for ever."""
    if depth > most:
        raise Refused(
            f"The agent would be at depth {depth}; agents may spawn agents down to depth {most}.",
            fix="Do the work yourself, or leave it to the agent that spawned you. "
            "The setting `max_depth` allows more.",
            code="too_deep",
        )


def is_held(task: Task) -> bool:
    """Whether the task waits until an actor who may cause a run lets it run."""
    return task.caused_by not in RUN and task.join is None and not task.spec.assignee


def let_run(task: Task, by: str) -> Task:
    """The task, when `by` lets it run. If `by` may cause no run, it waits for one who may."""
    if by in RUN and task.caused_by in RUN:
        return task
    return replace(task, caused_by=by)


def reworded(task: Task, by: str) -> Task:
    """The task, when `by` has changed its words: its runs can cause what the lower of both can."""
    return replace(task, caused_by=max(task.caused_by, by, key=RANKS.index))
