"""How many tasks there are, and what happened to one: its events, its gates and its files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Json, Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import NotFound
from fleet.domain.limits import Name, Rows, TextLimit, Whole
from fleet.domain.task import Directory, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import team_in_view, the_task
from fleet.operations.tasks.rows import rows
from fleet.ports import LandingQuery, TaskQuery

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

MAX_COUNTED = 1000  # questions, landings and tasks of a status; more are not counted
MOST_GATES = 20
GATE_BYTES = 16 << 10  # how much of a gate's output is shown, from its end
FILE_BYTES = 64 << 10  # how much of a file is shown, from its end


@dataclass(frozen=True, slots=True)
class Counts:
    """`open` to `cancelled`: tasks by state. `live`: runs at work; `room`: how many may be at once.

    `questions` and `landings`: those that are open. `ready` and `asking`: open tasks with this
    status, `held_back`: those that are held; `landing`: done ones. Each is at most 1000, but `ready`
    of all teams.
    """

    open: int
    running: int
    review: int
    done: int
    failed: int
    cancelled: int
    live: int
    room: int
    questions: int
    landings: int
    ready: int = 0
    asking: int = 0
    held_back: int = 0
    landing: int = 0


@dataclass(frozen=True, slots=True)
class CountTasks(Request[Counts]):
    """Of one team or project, or of all that the caller sees. Questions and landings: of the team."""

    project: Directory = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class EventRow:
    """`number` orders all events. `data`: what else is known, by the kind of event."""

    number: int
    type: str
    task: str
    run: str
    actor: str
    at: Time
    data: Json


@dataclass(frozen=True, slots=True)
class TaskEvents(Request[tuple[EventRow, ...]]):
    """Newest first. `before`: the number of the last event of the page before."""

    task: str
    before: Annotated[int, Whole(0)] = 0
    limit: Rows = 100


@dataclass(frozen=True, slots=True)
class GateRow:
    """`ended`: the exit status is `code`. `seconds`: how long it took, or has taken so far.

    `output`: the last lines that it printed.
    """

    run: str
    command: str
    ended: bool
    code: int | None
    seconds: int
    output: str


@dataclass(frozen=True, slots=True)
class TaskGates(Request[tuple[GateRow, ...]]):
    """Of its newest 20 runs, newest first: those whose gate ran on the machine that is asked."""

    task: str


@dataclass(frozen=True, slots=True)
class TaskFileRow:
    """`name`: in the task's folder, or of a run. `size` in bytes; `text`: the end of it, if asked for."""

    name: str
    size: int
    at: Time
    text: str


@dataclass(frozen=True, slots=True)
class ReadTaskFiles(Request[tuple[TaskFileRow, ...]]):
    """Its logs, what its agents left in `artifacts`, and stderr of its newest 20 runs.

    Those of the machine that is asked. `name`: only this one, with its last 64 KB.
    """

    task: str
    name: Annotated[str, TextLimit(1000, what="file")] = ""


def count_tasks(context: Context, request: CountTasks) -> Counts:
    store, team = context.store, team_in_view(context, request.team)
    states = store.counts(team=team, project=request.project)
    live = store.live_runs()
    if team or request.project:
        tasks = store.tasks_by_id([run.task for run in live])
        live = [run for run in live if _is_in(tasks.get(run.task), team, request.project)]
    now = store.now()
    most = context.world("").settings.max_concurrent
    questions = store.questions(team=team, limit=MAX_COUNTED)
    landings = store.landings(LandingQuery(team=team, open_only=True, limit=MAX_COUNTED))
    return Counts(
        **{str(state): states.get(str(state), 0) for state in TaskState},
        live=len(live),
        room=sum(host.room or most for host in store.hosts().values() if host.lease_until > now),
        questions=len(questions),
        landings=len(landings),
        ready=_ready(context, request, team),
        asking=_standing(context, request, team, "asking"),
        held_back=_standing(context, request, team, "held"),
        landing=_standing(context, request, team, "landing"),
    )


def _ready(context: Context, request: CountTasks, team: str) -> int:
    if not team and not request.project:
        return context.store.totals().ready
    return _standing(context, request, team, "ready")


def _standing(context: Context, request: CountTasks, team: str, status: str) -> int:
    """Count the tasks of this status: an index finds candidates, and `rows` has their exact status."""
    query = TaskQuery(project=request.project, team=team, may_be=(status,), limit=MAX_COUNTED)
    return sum(row.status == status for row in rows(context, context.store.tasks(query)))


def _is_in(task: object, team: str, project: str) -> bool:
    of_team = team in {"", getattr(task, "team", None)}
    return of_team and project in {"", getattr(task, "project", None)}


def task_events(context: Context, request: TaskEvents) -> tuple[EventRow, ...]:
    task = the_task(context, request.task, Permission.READ)
    events = context.store.events(
        task=task.id, before=request.before, limit=request.limit, newest=True
    )
    return tuple(
        EventRow(e.number, str(e.type), e.task, e.run, e.actor, e.at, json.dumps(e.data))
        for e in reversed(events)
    )


def task_gates(context: Context, request: TaskGates) -> tuple[GateRow, ...]:
    task = the_task(context, request.task, Permission.READ)
    agents = context.agents()
    runs = [run.id for run in reversed(context.store.runs(task.id)[-MOST_GATES:])]
    gates = ((run, agents.gate(run, tail=GATE_BYTES)) for run in runs)
    return tuple(
        GateRow(run, gate.command, gate.ended, gate.code, round(gate.seconds), gate.output)
        for run, gate in gates
        if gate is not None
    )


def task_files(context: Context, request: ReadTaskFiles) -> tuple[TaskFileRow, ...]:
    task = the_task(context, request.task, Permission.ANSWER)
    agents, name = context.agents(), request.name
    runs = [run.id for run in reversed(context.store.runs(task.id)[-MOST_GATES:])]
    files = agents.files(task.id, runs, name=name, tail=FILE_BYTES)
    if name and not files:
        raise NotFound(
            f"{task.id} has no file '{name[:100]}' on this machine.",
            fix="Leave `name` out to list the files.",
        )
    return tuple(TaskFileRow(*file) for file in files)


_READ = Permission.READ
OPERATIONS = (
    Operation("task.counts", CountTasks, _READ, count_tasks, "Count the tasks by state."),
    Operation("task.events", TaskEvents, _READ, task_events, "List what happened to a task."),
    Operation(
        "task.gates", TaskGates, _READ, task_gates, "Show how the gates of a task went.",
        outside=True,
    ),
    Operation(
        "task.files",
        ReadTaskFiles,
        Permission.ANSWER,  # they may have what others wrote to the agent alone
        task_files,
        "List the files about a task, or read one.",
        reads=True,
        outside=True,
    ),
)  # fmt: skip
