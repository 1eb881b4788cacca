"""Add a task; cancel, retry, close, pause and resume it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain import task as rules
from fleet.domain.access import SUPERVISOR, Permission, allow
from fleet.domain.causes import is_held, let_run
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, FleetError, Refused, nearest
from fleet.domain.event import Kind
from fleet.domain.message import Message, MessageKind, MessageState, delivered
from fleet.domain.run import Wanted
from fleet.domain.schedule import credential
from fleet.domain.task import SETTLED, Join, Spec, Task, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import cause_of, decide
from fleet.operations.shared.choice import choose_for
from fleet.operations.shared.names import clean_text, some_text, the_task
from fleet.operations.tasks.assign import must_be_theirs
from fleet.operations.tasks.check_spec import check_spec, checked_choice
from fleet.operations.tasks.commit import children, decided, write_task
from fleet.operations.tasks.dependencies import needed
from fleet.operations.tasks.rows import TaskRow, rows
from fleet.ports import Put, Same

if TYPE_CHECKING:
    from fleet.domain.run import Run
    from fleet.operations.catalogue import Context
    from fleet.ports import Change

MOST_TITLE, MOST_WHY, MOST_PROMPT = 200, 2000, 1_000_000
MOST_AFTER = 1000


@dataclass(frozen=True, slots=True)
class AddTask(Request[TaskRow]):
    """`after`: the tasks that it waits for.

    `join` (all, any): the task consists of its children and never runs itself. `project`: its
    directory; empty: the caller's, or the server's.
    """

    title: str
    prompt: str = ""
    project: str = ""
    spec: Spec = Spec()  # frozen
    after: tuple[str, ...] = ()
    parent: str = ""
    join: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class CancelTask(Request[TaskRow]):
    task: str
    why: str = "Cancelled."


@dataclass(frozen=True, slots=True)
class RetryTask(Request[TaskRow]):
    task: str


@dataclass(frozen=True, slots=True)
class CloseTask(Request[TaskRow]):
    task: str
    why: str = "Closed."


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
    one_line = " ".join(request.title.split())
    title = some_text("title", one_line, most=MOST_TITLE, example='fleet add "Fix the login"')
    prompt = clean_text("prompt", request.prompt, most=MOST_PROMPT)
    team = clean_text("team", request.team, most=MOST_TITLE) or context.actor.team
    allow(context.actor, Permission.ADD, team=team)
    project = request.project or context.project
    check_spec(request.spec)
    caused, depth = decide(
        context,
        project,
        request.spec,
        run=not request.join and not request.spec.assignee,
        role=role,
        depth=depth,
    )
    choice = checked_choice(request.spec, context.world(project))
    if len(request.after) > MOST_AFTER:
        raise BadInput(
            f"A task can wait for at most {MOST_AFTER} others.",
            fix="Group some of them under one parent task.",
        )
    after = tuple(dict.fromkeys(needed(context, name).id for name in request.after))
    parent, join = _parent(context, request.parent), _join(request.join)
    return Task(  # the id is made last, so that a refused task uses up none
        id=context.store.new_id("t"),
        version=0,
        state=TaskState.OPEN,
        title=title,
        prompt=prompt,
        project=project,
        author=context.actor.name,
        created_at=context.store.now(),
        team=team,
        spec=request.spec,
        after=after,
        parent=parent,
        join=join,
        depth=depth,
        role=caused.role,
        spawned=caused.counted,
        choice=choice,
        caused_by=caused.by,
    )


def _join(name: str) -> Join | None:
    known = {str(join): join for join in Join}
    if name and name not in known:
        fix = nearest(name, known) or f"Choose one of: {', '.join(known)}."
        raise BadInput(f"'{name}' is not a way to join child tasks.", fix=fix)
    return known.get(name)


def _parent(context: Context, name: str) -> str:
    if not name:
        return ""
    parent = the_task(context, name, Permission.ASSIGN)
    more = parent.spec.limits.agents or parent.state is TaskState.OPEN
    if parent.join is None or not more or rules.is_ended_swarm(parent):
        raise Refused(f"{parent.id} cannot have child tasks.", fix="Leave out the parent.")
    return parent.id


def cancel(context: Context, request: CancelTask) -> TaskRow:
    """A running task is cancelled by ending its run; the supervisor of its host does that."""
    why = clean_text("reason", request.why, most=MOST_WHY)
    task = the_task(context, request.task, Permission.ASSIGN)
    unsettled = [c for c in children(context.store, task) if c.state not in SETTLED]
    for child in unsettled:
        cancel(context, replace(request, task=child.id))
    if unsettled:
        task = context.store.task(task.id)
        if task.state is not TaskState.FAILED:  # it ends with the last of them
            return rows(context, [task])[0]
    if task.state is TaskState.RUNNING:
        return _end_run(context, task)
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
    why = some_text("reason", request.why, most=MOST_WHY)
    task = the_task(context, request.task, Permission.COMPLETE)
    if context.run is not None and context.run.id == task.run_id:
        return _close_own(context, task, context.run, why)
    must_be_theirs(context, task)
    with decided(task):
        closed = rules.close(task, why, now=context.store.now())
        return write_task(context, closed, Kind.TASK_CLOSED, why=why)


def _close_own(context: Context, task: Task, run: Run, why: str) -> TaskRow:
    """Its own agent says that it is done; the task is settled when the run has ended."""
    event = context.event(Kind.RUN_CLOSED, task.id, why=why)
    context.commit([Put(replace(run, closed=why)), Same(task)], event)
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
    resumed = replace(task, paused=False, tally=replace(task.tally, not_before=0))
    return write_task(context, let_run(resumed, cause_of(context)), Kind.TASK_RESUMED, changes)


def _parked(context: Context, task: Task) -> list[Change]:
    """End the rate limit of the credential that it waits for: resuming means that, too."""
    try:
        name = credential(choose_for(context.world(task.project), task))
    except FleetError:
        return []
    row = context.store.slots([name]).get(name)
    return [Put(replace(row, parked_until=0))] if row and row.parked_until else []


def _budget_question(context: Context, task: Task) -> list[Change]:
    """Close the question that the supervisor asked when the budget was spent."""
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
    Operation(
        "task.add", AddTask, _P.ADD, add, "Queue a task.", idempotent=False, shown_by="task.show"
    ),
    Operation("task.cancel", CancelTask, _P.ASSIGN, cancel, "Cancel a task.", at_host=True),
    Operation("task.retry", RetryTask, _P.ASSIGN, retry, "Queue an ended task again."),
    Operation("task.close", CloseTask, _P.COMPLETE, close, "Close a task: mark it as done."),
    Operation("task.pause", PauseTask, _P.ASSIGN, pause, "Keep a task from starting."),
    Operation(
        "task.resume", ResumeTask, _P.ASSIGN, resume, "Let a paused or postponed task start."
    ),
)
