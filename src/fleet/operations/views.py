"""Tasks as people see them. What is shown is derived here, and never stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleet.domain.choice import Defaults, choose
from fleet.domain.errors import FleetError
from fleet.domain.message import MessageKind
from fleet.domain.run import Run, RunState, Usage
from fleet.domain.schedule import waits
from fleet.domain.task import TaskState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.message import Message
    from fleet.domain.run import Progress
    from fleet.domain.schedule import Wait
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

STATUS = {  # what holds an open task, most telling first
    "asking": "asking",
    "paused": "paused",
    "after": "waiting",
    "postponed": "postponed",
    "children": "children",
}


@dataclass(frozen=True, slots=True)
class TaskRow:
    id: str
    title: str
    status: str
    state: str
    priority: int
    agent: str
    coder: str
    model: str
    given: tuple[str, ...]  # which of agent, coder and model the task itself asked for
    project: str
    cwd: str
    created_at: int
    run: str
    started_at: int
    progress: ProgressRow | None


@dataclass(frozen=True, slots=True)
class ProgressRow:
    at: int
    lines: int
    usage: Usage
    peak_context: int
    last: str


@dataclass(frozen=True, slots=True)
class RunRow:
    id: str
    state: str
    coder: str
    model: str
    node: str
    host: str
    branch: str
    path: str
    claimed_at: int
    started_at: int
    ended_at: int
    ending: str
    detail: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class WaitRow:
    code: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class MessageRow:
    id: str
    task: str
    author: str
    kind: str
    text: str
    state: str
    at: int
    options: tuple[str, ...]
    reply_to: str


@dataclass(frozen=True, slots=True)
class TaskDetail:
    task: TaskRow
    prompt: str
    after: tuple[str, ...]
    needed_by: tuple[str, ...]
    waits: tuple[WaitRow, ...]
    runs: tuple[RunRow, ...]
    messages: tuple[MessageRow, ...]
    failures: int
    why: str


def rows(context: Context, tasks: Sequence[Task]) -> list[TaskRow]:
    """All that a list needs, in a fixed number of reads."""
    store = context.store
    needs = store.tasks_by_id(sorted({n for t in tasks for n in t.after}))
    run_ids = [t.run_id for t in tasks if t.state is TaskState.RUNNING]
    progress = store.progress(run_ids)
    runs = {r.id: r for r in store.live_runs()} if run_ids else {}
    asking: dict[str, list[Message]] = {}
    for question in store.open_messages(MessageKind.QUESTION, limit=1000):
        asking.setdefault(question.task, []).append(question)
    now = store.now()
    found = []
    for task in tasks:
        held = waits(
            task, [needs[n] for n in task.after if n in needs], asking.get(task.id, []), now=now
        )
        run = runs.get(task.run_id)
        found.append(_row(context, task, held, run, progress.get(task.run_id)))
    return found


def _row(
    context: Context, task: Task, held: Sequence[Wait], run: Run | None, progress: Progress | None
) -> TaskRow:
    agent, coder, model = _who(context, task, run)
    spec = task.spec
    given = tuple(n for n in ("agent", "coder", "model") if getattr(spec, n))
    return TaskRow(
        id=task.id,
        title=task.title,
        status=_status(task, held, run),
        state=task.state,
        priority=spec.priority,
        agent=agent,
        coder=coder,
        model=model,
        given=given,
        project=task.project,
        cwd=spec.cwd,
        created_at=task.created_at,
        run=task.run_id,
        started_at=run.started_at if run else 0,
        progress=_progress(progress),
    )


def _who(context: Context, task: Task, run: Run | None) -> tuple[str, str, str]:
    """The run's choice while there is one, else what it would be now."""
    if run is not None:
        return run.choice.agent, run.choice.coder, run.choice.model
    try:
        world = context.world(task.project)
        defaults = Defaults(world.settings.coder, world.settings.model)
        _, choice = choose(task.spec, world.fleet, defaults)
    except FleetError:  # a project that is gone or broken is no reason not to list its tasks
        return task.spec.agent, task.spec.coder, task.spec.model
    return choice.agent, choice.coder, choice.model


def _status(task: Task, held: Sequence[Wait], run: Run | None) -> str:
    if task.state is TaskState.RUNNING:
        if run is not None and run.wanted:
            return "stopping"
        return "starting" if run is not None and run.state is RunState.CLAIMED else "running"
    if task.state is not TaskState.OPEN:
        return str(task.state)
    codes = {w.code for w in held}
    return next((shown for code, shown in STATUS.items() if code in codes), "ready")


def _progress(progress: Progress | None) -> ProgressRow | None:
    if progress is None:
        return None
    p = progress
    return ProgressRow(p.at, p.lines, p.usage, p.peak_context, p.last)


def run_row(run: Run) -> RunRow:
    outcome, place = run.outcome, run.workspace
    return RunRow(
        id=run.id,
        state=run.state,
        coder=run.choice.coder,
        model=run.choice.model,
        node=run.choice.node,
        host=run.host,
        branch=place.branch if place else "",
        path=place.path if place else "",
        claimed_at=run.claimed_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        ending=outcome.ending if outcome else "",
        detail=outcome.detail if outcome else "",
        usage=outcome.usage if outcome else Usage(),
    )


def message_row(message: Message) -> MessageRow:
    m = message
    return MessageRow(m.id, m.task, m.author, m.kind, m.text, m.state, m.at, m.options, m.reply_to)


def detail(context: Context, task: Task) -> TaskDetail:
    store = context.store
    (row,) = rows(context, [task])
    needs = store.tasks_by_id(task.after)
    messages = store.messages(task.id)
    held = waits(task, [needs[n] for n in task.after if n in needs], messages, now=store.now())
    return TaskDetail(
        task=row,
        prompt=task.prompt,
        after=task.after,
        needed_by=tuple(store.dependents(task.id)),
        waits=tuple(WaitRow(w.code, w.why, w.fix) for w in held),
        runs=tuple(run_row(r) for r in store.runs(task.id)),
        messages=tuple(message_row(m) for m in messages),
        failures=task.tally.failures,
        why=task.tally.why,
    )
