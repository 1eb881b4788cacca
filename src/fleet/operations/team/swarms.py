"""Swarms: tasks with children, of which at most `max_agents` run at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain import task as rules
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Name, Rows, TextLimit, Whole
from fleet.domain.task import ENDED, Directory, Join, Limits, Spec, TaskState, is_ended_swarm
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import new_entry, page, the_team
from fleet.operations.shared.names import the_task
from fleet.operations.tasks.change import AddTask, CancelTask, Reason, cancel, new_task
from fleet.operations.tasks.commit import children, write_task
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

LIST = "`fleet swarms` lists them."

SwarmName = Annotated[str, TextLimit(100, some=True, what="name")]
SwarmAbout = Annotated[str, TextLimit(500, what="description")]
MaxAgents = Annotated[int, Whole(1, 100, what="max_agents", example="The default is 10.")]


@dataclass(frozen=True, slots=True)
class SwarmRow:
    """`id` is the id of its task; `agents`: how many of its `tasks` run now."""

    id: str
    name: str
    description: str
    max_agents: int
    team: str
    state: str
    agents: int
    tasks: int
    at: Time


@dataclass(frozen=True, slots=True)
class CreateSwarm(Request[SwarmRow]):
    """A task joins the swarm by naming it as its parent."""

    name: SwarmName
    max_agents: MaxAgents = 10
    description: SwarmAbout = ""
    team: Name = ""
    project: Directory = ""


@dataclass(frozen=True, slots=True)
class ShowSwarm(Request[SwarmRow]):
    swarm: str


@dataclass(frozen=True, slots=True)
class ListSwarms(Request[tuple[SwarmRow, ...]]):
    """Newest first; `all`: also those that have ended."""

    team: Name = ""
    all: bool = False
    before: str = ""
    limit: Rows = 50


@dataclass(frozen=True, slots=True)
class KillSwarm(Request[SwarmRow]):
    """Cancels every task in it and ends their runs; their work is kept."""

    swarm: str
    why: Reason = "Its swarm was ended."


def create(context: Context, request: CreateSwarm) -> SwarmRow:
    order = AddTask(
        request.name,
        request.description,
        request.project,
        Spec(limits=Limits(agents=request.max_agents)),
        join=str(Join.ALL),
        team=the_team(context, request.team, Permission.SPAWN),
    )
    task = new_task(context, order)
    entry = new_entry(
        context,
        EntryKind.SWARM,
        team=task.team,
        key=task.id,
        owner=context.actor.name,
        text=task.title,
    )
    write_task(context, task, Kind.TASK_ADDED, [Put(entry)], title=task.title)
    return _row(context, task)


def show(context: Context, request: ShowSwarm) -> SwarmRow:
    return _row(context, the_swarm(context, request.swarm, Permission.READ))


def list_swarms(context: Context, request: ListSwarms) -> tuple[SwarmRow, ...]:
    before = _entry_of(context, request.before) if request.before else ""
    listed: list[Task] = []
    while len(listed) < request.limit:
        some = page(context, EntryKind.SWARM, team=request.team, limit=request.limit, before=before)
        tasks = context.store.tasks_by_id([e.key for e in some])
        listed += [
            t for e in some if (t := tasks.get(e.key)) if request.all or not is_ended_swarm(t)
        ]
        if len(some) < request.limit:
            break
        before = some[-1].id
    return tuple(_row(context, task) for task in listed[: request.limit])


def kill(context: Context, request: KillSwarm) -> SwarmRow:
    task = the_swarm(context, request.swarm, Permission.DISMISS)
    inside = children(context.store, task)
    going = [c for c in inside if c.state not in ENDED]
    if is_ended_swarm(task) and not going:
        raise Refused(f"{task.id} has already ended.", fix=LIST, code="ended")
    if not task.paused:  # first, so that no new task can join it
        ended, now = replace(task, paused=True), context.store.now()
        if inside:  # it ends when the last of them has ended
            ended = rules.join(ended, inside, now=now)
        else:
            ended = rules.cancel(ended, request.why, now=now)
        write_task(context, ended, Kind.SWARM_ENDED, why=request.why)
    for child in going:
        cancel(context, CancelTask(child.id, request.why))
    return _row(context, context.store.task(task.id))


def the_swarm(context: Context, name: str, permission: Permission) -> Task:
    task = the_task(context, name, permission)
    if task.join is None:
        raise NotFound(f"{task.id} is a task, not a swarm.", fix=LIST)
    return task


def _entry_of(context: Context, name: str) -> str:
    task = the_swarm(context, name, Permission.READ)
    entry = context.store.entry(EntryKind.SWARM, task.team, task.id)
    if entry is None:
        raise NotFound(f"There is no swarm '{name[:60]}'.", fix=LIST)
    return entry.id


def _row(context: Context, task: Task) -> SwarmRow:
    inside = children(context.store, task)
    return SwarmRow(
        id=task.id,
        name=task.title,
        description=task.prompt,
        max_agents=task.spec.limits.agents,
        team=task.team,
        state=str(TaskState.CANCELLED if is_ended_swarm(task) else task.state),
        agents=sum(c.state is TaskState.RUNNING for c in inside),
        tasks=len(inside),
        at=task.created_at,
    )


_P = Permission
OPERATIONS = (
    Operation("swarm.create", CreateSwarm, _P.SPAWN, create, "Create a swarm.", idempotent=False,
              shown_by="swarm.show"),
    Operation("swarm.list", ListSwarms, _P.READ, list_swarms, "List the swarms."),
    Operation("swarm.show", ShowSwarm, _P.READ, show, "Show a swarm."),
    Operation("swarm.kill", KillSwarm, _P.DISMISS, kill, "End a swarm.", at_host=True),
)  # fmt: skip
