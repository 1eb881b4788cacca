"""Tasks: added, listed, shown, changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fleet.domain import task as rules
from fleet.domain.access import Permission, allow
from fleet.domain.choice import Defaults, choose
from fleet.domain.errors import BadInput, NotFound, Refused
from fleet.domain.event import Event
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Wanted
from fleet.domain.task import ENDED, Join, Spec, Task, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.naming import LIST, clean_text, the_task
from fleet.operations.parents import MOST as MOST_CHILDREN
from fleet.operations.parents import parent_changes
from fleet.operations.views import TaskDetail, TaskRow, detail, rows
from fleet.ports import Put, Same, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.operations.catalogue import Context
    from fleet.ports import Change

MOST_TITLE, MOST_PROMPT = 200, 1_000_000
LIVE = (TaskState.OPEN, TaskState.RUNNING, TaskState.REVIEW)


@dataclass(frozen=True, slots=True)
class AddTask(Request[TaskRow]):
    title: str
    prompt: str = ""
    project: str = ""
    spec: Spec = Spec()  # noqa: RUF009  # frozen
    after: tuple[str, ...] = ()
    parent: str = ""
    join: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class ListTasks(Request[tuple[TaskRow, ...]]):
    """`all`: ended ones too."""

    project: str = ""
    team: str = ""
    all: bool = False
    states: tuple[str, ...] = ()
    before: str = ""
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ReadyTasks(Request[tuple[TaskRow, ...]]):
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ShowTask(Request[TaskDetail]):
    task: str


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
    task: str


@dataclass(frozen=True, slots=True)
class CommentTask(Request[TaskRow]):
    task: str
    text: str


@dataclass(frozen=True, slots=True)
class AddDependency(Request[TaskRow]):
    task: str
    needs: str


@dataclass(frozen=True, slots=True)
class RemoveDependency(Request[TaskRow]):
    task: str
    needs: str


def add(context: Context, request: AddTask) -> TaskRow:
    title = clean_text("title", request.title.strip(), most=MOST_TITLE)
    if not title:
        raise BadInput("A task needs a title.", fix='fleet add "Fix the login"')
    if not 0 <= request.spec.priority <= 4:
        raise BadInput(f"Priority {request.spec.priority} is not between 0 (first) and 4 (last).")
    team = request.team or context.actor.team
    allow(context.actor, Permission.ADD, team=team)
    world = context.world(request.project)
    choose(request.spec, world.fleet, Defaults(world.settings.coder, world.settings.model))
    needs = _needs(context, request.after)
    parent = _parent(context, request.parent)
    task = Task(
        id=context.store.new_id("t"),
        version=0,
        state=TaskState.OPEN,
        title=title,
        prompt=clean_text("prompt", request.prompt, most=MOST_PROMPT),
        project=request.project,
        author=context.actor.name,
        created_at=context.store.now(),
        team=team,
        spec=request.spec,
        after=tuple(n.id for n in needs),
        parent=parent,
        join=Join(request.join) if request.join else None,
    )
    return _write(context, task, "task.added", title=title)


def _parent(context: Context, name: str) -> str:
    if not name:
        return ""
    parent = the_task(context, name, Permission.ASSIGN)
    if parent.join is None or parent.state is not TaskState.OPEN:
        raise Refused(f"{parent.id} is not a task that takes children.")
    return parent.id


def _needs(context: Context, names: Iterable[str]) -> list[Task]:
    found = []
    for name in names:
        try:
            need = the_task(context, name, Permission.READ)
        except NotFound as error:
            raise NotFound(f"There is no task '{name}' to wait for.", fix=LIST) from error
        if need.state is TaskState.CANCELLED:
            raise Refused(
                f"{need.id} is cancelled, so nothing can wait for it.",
                fix=f"fleet retry {need.id}",
            )
        if need not in found:
            found.append(need)
    return found


def list_tasks(context: Context, request: ListTasks) -> tuple[TaskRow, ...]:
    team = request.team or context.actor.team
    allow(context.actor, Permission.READ, team=team)
    states = request.states or (() if request.all else LIVE)
    query = TaskQuery(
        states=tuple(str(s) for s in states),
        project=request.project,
        team=request.team,
        before=request.before,
        limit=request.limit,
    )
    return tuple(rows(context, context.store.tasks(query)))


def ready(context: Context, request: ReadyTasks) -> tuple[TaskRow, ...]:
    found = context.store.candidates(now=context.store.now(), limit=request.limit)
    return tuple(rows(context, [t for t in found if t.team == context.actor.team]))


def show(context: Context, request: ShowTask) -> TaskDetail:
    return detail(context, the_task(context, request.task, Permission.READ))


def cancel(context: Context, request: CancelTask) -> TaskRow:
    """A running task is cancelled by ending its run; the supervisor of its host does that."""
    task = the_task(context, request.task, Permission.ASSIGN)
    if task.join is not None:
        for child in context.store.tasks(TaskQuery(parent=task.id, limit=MOST_CHILDREN)):
            if child.state not in ENDED:
                cancel(context, replace(request, task=child.id))
        return rows(context, [context.store.task(task.id)])[0]
    now = context.store.now()
    if task.state is not TaskState.RUNNING:
        return _write(context, rules.cancel(task, request.why, now=now), "task.cancelled")
    run = context.store.run(task.run_id)
    wanted = replace(run, wanted=Wanted.CANCEL)
    event = Event("run.stop_wanted", task.id, context.actor.name, now, run.id)
    context.store.commit([Put(wanted), Same(task)], [event])
    return rows(context, [task])[0]


def retry(context: Context, request: RetryTask) -> TaskRow:
    task = the_task(context, request.task, Permission.ASSIGN)
    return _write(context, rules.reopen(task), "task.reopened")


def close(context: Context, request: CloseTask) -> TaskRow:
    task = the_task(context, request.task, Permission.COMPLETE)
    closed = rules.close(task, request.why, now=context.store.now())
    return _write(context, closed, "task.closed", why=request.why)


def pause(context: Context, request: PauseTask) -> TaskRow:
    task = the_task(context, request.task, Permission.ASSIGN)
    return _write(context, replace(task, paused=True), "task.paused")


def resume(context: Context, request: ResumeTask) -> TaskRow:
    task = the_task(context, request.task, Permission.ASSIGN)
    tally = replace(task.tally, not_before=0)
    return _write(context, replace(task, paused=False, tally=tally), "task.resumed")


def comment(context: Context, request: CommentTask) -> TaskRow:
    task = the_task(context, request.task, Permission.SEND)
    text = clean_text("comment", request.text.strip(), most=MOST_PROMPT)
    if not text:
        raise BadInput("The comment is empty.")
    now = context.store.now()
    note = Message(
        id=context.store.new_id("m"),
        version=0,
        task=task.id,
        author=context.actor.name,
        kind=MessageKind.NOTE,
        text=text,
        state=MessageState.CLOSED,
        at=now,
        closed_at=now,
    )
    event = Event("message.posted", task.id, context.actor.name, now, data={"message": note.id})
    context.store.commit([Put(note)], [event])
    return rows(context, [task])[0]


def depend(context: Context, request: AddDependency) -> TaskRow:
    task = the_task(context, request.task, Permission.ASSIGN)
    (need,) = _needs(context, [request.needs])
    seen = {need.id: need}

    def needs_of(task_id: str) -> tuple[str, ...]:
        held = seen.get(task_id) or context.store.tasks_by_id([task_id]).get(task_id)
        if held is None:
            return ()
        seen[task_id] = held
        return held.after

    changed = rules.depend(task, need.id, needs_of)
    same = [Same(t) for t in seen.values() if t.id != task.id]  # or two could make a circle
    return _write(context, changed, "task.needs", same, needs=need.id)


def independ(context: Context, request: RemoveDependency) -> TaskRow:
    task = the_task(context, request.task, Permission.ASSIGN)
    needs = the_task(context, request.needs, Permission.READ).id
    if needs not in task.after:
        raise Refused(f"{task.id} does not wait for {needs}.", code="no_dependency")
    changed = replace(task, after=tuple(n for n in task.after if n != needs))
    return _write(context, changed, "task.needs_not", needs=needs)


def _write(
    context: Context, task: Task, kind: str, more: Iterable[Change] = (), **data: str
) -> TaskRow:
    now = context.store.now()
    event = Event(kind, task.id, context.actor.name, now, data=dict(data))
    parents = parent_changes(context.store, task, now=now)
    written = context.store.commit([Put(task), *more, *parents], [event])[0]
    assert isinstance(written, Task)
    return rows(context, [written])[0]


_P = Permission
OPERATIONS = (
    Operation("task.add", AddTask, TaskRow, _P.ADD, add, "Queue a task.", idempotent=False),
    Operation("task.list", ListTasks, tuple, _P.READ, list_tasks, "List the tasks."),
    Operation("task.ready", ReadyTasks, tuple, _P.READ, ready, "List what could start now."),
    Operation("task.show", ShowTask, TaskDetail, _P.READ, show, "Show one task."),
    Operation(
        "task.cancel", CancelTask, TaskRow, _P.ASSIGN, cancel, "Cancel a task.", at_host=True
    ),
    Operation("task.retry", RetryTask, TaskRow, _P.ASSIGN, retry, "Open an ended task again."),
    Operation("task.close", CloseTask, TaskRow, _P.COMPLETE, close, "Settle a task by hand."),
    Operation("task.pause", PauseTask, TaskRow, _P.ASSIGN, pause, "Keep a task from starting."),
    Operation("task.resume", ResumeTask, TaskRow, _P.ASSIGN, resume, "Let a task start again."),
    Operation(
        "task.comment", CommentTask, TaskRow, _P.SEND, comment, "Write a note.", idempotent=False
    ),
    Operation("task.depend", AddDependency, TaskRow, _P.ASSIGN, depend, "Wait for another task."),
    Operation(
        "task.independ", RemoveDependency, TaskRow, _P.ASSIGN, independ, "Wait for it no longer."
    ),
)
