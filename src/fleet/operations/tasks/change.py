"""Add a task; cancel, retry, close, pause and resume it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.domain import task as rules
from fleet.domain.access import SUPERVISOR, Permission, allow
from fleet.domain.causes import is_held, let_run
from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError, Mismatch, Refused, Unavailable
from fleet.domain.event import Kind
from fleet.domain.limits import Items, Name, OneOf, TextLimit
from fleet.domain.message import Message, MessageKind, MessageState, delivered
from fleet.domain.routes import Traits
from fleet.domain.run import RunState, Wanted
from fleet.domain.schedule import credential
from fleet.domain.task import SETTLED, Directory, Join, Mode, Spec, Task, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import cause_of, decide
from fleet.operations.shared.choice import checked_choice, choose_for
from fleet.operations.shared.names import the_task
from fleet.operations.tasks.assign import must_be_theirs
from fleet.operations.tasks.commit import children, decided, write_task
from fleet.operations.tasks.dependencies import needs_of
from fleet.operations.tasks.rows import TaskRow, rows
from fleet.ports import Put, Same

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.run import Run
    from fleet.operations.catalogue import Context
    from fleet.ports import Change

MOST_TITLE, MOST_PROMPT = 200, 1_000_000

Title = Annotated[
    str,
    TextLimit(MOST_TITLE, some=True, what="title", example="Say what is to be done: Fix the login"),
]
Prompt = Annotated[str, TextLimit(MOST_PROMPT, what="prompt")]
JoinName = Annotated[str, OneOf(("", *Join), "way to join child tasks")]
Reason = Annotated[str, TextLimit(2000, what="reason")]
SomeReason = Annotated[str, TextLimit(2000, some=True, what="reason")]
Needs = Annotated[
    tuple[str, ...], Items(1000, example="Group some of the tasks under one parent task.")
]


@dataclass(frozen=True, slots=True)
class AddTask(Request[TaskRow]):
    """`after`: the tasks that it waits for; `t-3:landed`: until the work of t-3 has landed.

    `join` (all, any): the task consists of its children and never runs itself. `project`: its
    directory; empty: the caller's, or the server's.
    """

    title: Title
    prompt: Prompt = ""
    project: Directory = ""
    spec: Spec = Spec()  # frozen
    after: Needs = ()
    parent: str = ""
    join: JoinName = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class CancelTask(Request[TaskRow]):
    task: str
    why: Reason = "Cancelled."


@dataclass(frozen=True, slots=True)
class RetryTask(Request[TaskRow]):
    task: str


@dataclass(frozen=True, slots=True)
class CloseTask(Request[TaskRow]):
    task: str
    why: SomeReason = "Closed."


@dataclass(frozen=True, slots=True)
class PauseTask(Request[TaskRow]):
    task: str


@dataclass(frozen=True, slots=True)
class ResumeTask(Request[TaskRow]):
    """Also ends the wait for a lead or for a rate limit, and renews the budget if it is spent."""

    task: str


def add(context: Context, request: AddTask) -> TaskRow:
    task = new_task(context, request)
    return write_task(context, task, Kind.TASK_ADDED, title=task.title)


def new_task(context: Context, request: AddTask, *, role: str = "", depth: int = 0) -> Task:
    """The task that the request asks for, not written yet. Raise unless the actor may cause it."""
    return draft_task(
        context, request, role=role, depth=depth, new_id=lambda: context.store.new_id("t")
    )


def draft_task(
    context: Context,
    request: AddTask,
    *,
    role: str = "",
    depth: int = 0,
    new_id: Callable[[], str] = str,
) -> Task:
    """Like `new_task`. `new_id` is called last, so that a refused task uses no id; default: no id."""
    team = request.team or context.actor.team
    allow(context.actor, Permission.ADD, team=team)
    project = request.project or context.project
    traits = Traits(request.title, request.prompt, request.spec.labels)
    caused, depth = decide(
        context,
        project,
        request.spec,
        run=not request.join and not request.spec.assignee,
        role=role,
        depth=depth,
        traits=traits,
    )
    _check_place(request.spec)
    choice = checked_choice(request.spec, context.world(project), traits)
    needs = needs_of(context, request.after)
    parent, join = _parent(context, request.parent), Join(request.join) if request.join else None
    spec = _at_hand(context, request.spec)
    return Task(
        id=new_id(),
        version=0,
        state=TaskState.OPEN,
        title=" ".join(request.title.split()),
        prompt=request.prompt,
        project=project,
        author=context.actor.name,
        created_at=context.store.now(),
        team=team,
        spec=spec,
        after=tuple(needs),
        after_landed=tuple(need for need, landed in needs.items() if landed),
        parent=parent,
        join=join,
        depth=depth,
        role=caused.role,
        spawned=caused.counted,
        choice=choice,
        caused_by=caused.by,
    )


def _check_place(spec: Spec) -> None:
    if spec.in_place and (spec.base or spec.branch):
        raise Mismatch(
            "A task that works in place has no branch of its own.",
            fix="Leave out --in-place, or --base and --branch.",
        )


def _at_hand(context: Context, spec: Spec) -> Spec:
    """Bind a task that starts at once, or in a terminal, to the host where it is added."""
    if spec.mode == Mode.QUEUED or spec.limits.needs:
        return spec
    with suppress(Unavailable):  # no agent can run here
        agents = context.agents()
        if agents.shared:
            return replace(spec, limits=replace(spec.limits, needs=(agents.host,)))
    return spec


def _parent(context: Context, name: str) -> str:
    if not name:
        return ""
    parent = the_task(context, name, Permission.ASSIGN)
    more = parent.spec.limits.agents or parent.state is TaskState.OPEN
    if parent.join is None or not more or rules.is_ended_swarm(parent):
        raise Refused(f"{parent.id} cannot have child tasks.", fix="Leave out the parent.")
    return parent.id


def cancel(context: Context, request: CancelTask) -> TaskRow:
    """Cancel the task and its children; if it runs, ask the supervisor of its host to end the run."""
    task, why = the_task(context, request.task, Permission.ASSIGN), request.why
    unsettled = [c for c in children(context.store, task) if c.state not in SETTLED]
    for child in unsettled:
        cancel(context, replace(request, task=child.id))
    if unsettled:
        task = context.store.task(task.id)
        if task.state is not TaskState.FAILED:  # a parent is cancelled with its last child
            return rows(context, [task])[0]
    if task.state is TaskState.RUNNING:
        return _end_run(context, task)
    if task.tally.landed:
        raise Refused(
            f"{task.id} has landed ({task.tally.landed[:12]}), so it cannot be cancelled.",
            fix=f"To take it out of its branch again: fleet land undo {task.id}",
            code="ended",
        )
    now = context.store.now()
    with decided(task):
        return write_task(context, rules.cancel(task, why, now=now), Kind.TASK_CANCELLED, why=why)


def _end_run(context: Context, task: Task) -> TaskRow:
    run = context.store.run(task.run_id)
    if run.wanted is not Wanted.CANCEL:
        event = context.event(Kind.RUN_STOP_WANTED, task.id, run=run.id)
        context.commit([Put(replace(run, wanted=Wanted.CANCEL)), Same(task)], event)
    return rows(context, [task])[0]


def retry(context: Context, request: RetryTask) -> TaskRow:
    return reopen_task(context, the_task(context, request.task, Permission.ASSIGN))


def reopen_task(context: Context, task: Task) -> TaskRow:
    with decided(task):
        opened = let_run(rules.reopen(task), cause_of(context))
        return write_task(context, opened, Kind.TASK_REOPENED)


def close(context: Context, request: CloseTask) -> TaskRow:
    task, why = the_task(context, request.task, Permission.COMPLETE), request.why.strip()
    if context.run is not None and context.run.id == task.run_id:
        return _close_own(context, task, context.run, why)
    must_be_theirs(context, task)
    if task.state is TaskState.RUNNING and task.spec.mode == Mode.TERMINAL:
        return _close_terminal(context, task, why)
    with decided(task):
        closed = rules.close(task, why, now=context.store.now())
        return write_task(context, closed, Kind.TASK_CLOSED, why=why)


def _close_own(context: Context, task: Task, run: Run, why: str) -> TaskRow:
    """Record that the task's own agent closed it; the task is settled when the run ends."""
    event = context.event(Kind.RUN_CLOSED, task.id, why=why)
    context.commit([Put(replace(run, closed=why)), Same(task)], event)
    return rows(context, [task])[0]


def _close_terminal(context: Context, task: Task, why: str) -> TaskRow:
    """Ask the supervisor to end an agent that runs in a terminal between two of its turns."""
    run = context.store.run(task.run_id)
    if run.state is RunState.CLAIMED:
        raise Refused(
            f"{task.id} is still starting.",
            fix=f"To end it: fleet cancel {task.id}",
            code="starting",
        )
    if run.wanted is Wanted.NOTHING:
        event = context.event(Kind.RUN_CLOSED, task.id, run=run.id, why=why)
        closing = replace(run, wanted=Wanted.CLOSE, closed=why)
        context.commit([Put(closing), Same(task)], event)
    return rows(context, [task])[0]


def pause(context: Context, request: PauseTask) -> TaskRow:
    return pause_task(context, the_task(context, request.task, Permission.ASSIGN))


def pause_task(context: Context, task: Task) -> TaskRow:
    _must_be_going(task)
    if task.paused:
        return rows(context, [task])[0]
    return write_task(context, replace(task, paused=True), Kind.TASK_PAUSED)


def resume(context: Context, request: ResumeTask) -> TaskRow:
    task = the_task(context, request.task, Permission.ASSIGN)
    if not task.paused:
        _must_be_going(task)
    changes = [*_parked(context, task), *_budget_question(context, task)]
    waits = task.paused or task.tally.not_before or is_held(task)
    if not waits and not changes:
        return rows(context, [task])[0]
    if any(isinstance(change.record, Message) for change in changes):
        task = rules.grant(task)
    resumed = replace(task, paused=False, tally=replace(task.tally, not_before=0, stuck=False))
    return write_task(context, let_run(resumed, cause_of(context)), Kind.TASK_RESUMED, changes)


def _parked(context: Context, task: Task) -> list[Change]:
    """The changes that end the rate limit of the task's credential, on all hosts."""
    try:
        choice = choose_for(context.world(task.project), task)
    except FleetError:
        return []
    names = [credential(choice, host) for host in context.store.hosts()]
    rows = context.store.slots(names).values() if names else ()
    return [Put(replace(row, parked_until=0)) for row in rows if row.parked_until]


def _budget_question(context: Context, task: Task) -> list[Change]:
    """The changes that close the supervisor's question about the spent budget."""
    now = context.store.now()
    return [
        Put(delivered(m, at=now))
        for m in context.store.messages(task.id)
        if (m.author, m.kind, m.state) == (SUPERVISOR, MessageKind.QUESTION, MessageState.OPEN)
    ]


def _must_be_going(task: Task) -> None:
    if task.join is not None:
        raise Refused(
            f"{task.id} has child tasks and no run of its own.", fix="Pause or resume its children."
        )
    if task.state not in {TaskState.OPEN, TaskState.RUNNING}:
        raise Refused(
            f"{task.id} is {task.state}, so it can be neither paused nor resumed.",
            fix=f"`fleet retry {task.id}` opens it again.",
            code="ended",
        )


_P = Permission
OPERATIONS = (
    Operation("task.add", AddTask, _P.ADD, add, "Queue a task.", idempotent=False,
              shown_by="task.show"),
    Operation("task.cancel", CancelTask, _P.ASSIGN, cancel, "Cancel a task.", at_host=True),
    Operation("task.retry", RetryTask, _P.ASSIGN, retry, "Queue an ended task again."),
    Operation("task.close", CloseTask, _P.COMPLETE, close, "Close a task: mark it as done.",
              at_host=True),
    Operation("task.pause", PauseTask, _P.ASSIGN, pause, "Keep a task from starting."),
    Operation("task.resume", ResumeTask, _P.ASSIGN, resume,
              "Let a paused or postponed task start."),
)  # fmt: skip
