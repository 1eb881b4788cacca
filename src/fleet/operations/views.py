"""Tasks as people see them. What is shown is derived here, and never stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.choice import Defaults, choose, model_slots
from fleet.domain.errors import FleetError
from fleet.domain.message import MessageKind
from fleet.domain.run import Run, RunState
from fleet.domain.schedule import Ask, Slot, Wait, schedule, waits
from fleet.domain.task import TaskState
from fleet.operations.parents import children
from fleet.operations.replies import (
    MessageRow,
    RunNow,
    RunRow,
    TaskDetail,
    TaskRow,
    UsageRow,
    WaitRow,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.message import Message
    from fleet.domain.run import Choice, Progress, Usage
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Store

MOST_QUESTIONS = 100_000
HELD = {  # by what holds an open task, most telling first
    "asking": "asking",
    "paused": "paused",
    "after": "waiting",
    "postponed": "postponed",
    "children": "children",
}
STATE_OF = {  # of every status that is shown, and of the states themselves
    **{str(state): state for state in TaskState},
    **dict.fromkeys(("ready", *HELD.values()), TaskState.OPEN),
    **dict.fromkeys(("starting", "stopping"), TaskState.RUNNING),
}


def rows(context: Context, tasks: Sequence[Task]) -> list[TaskRow]:
    """All that a list needs. Only ended runs are read one by one."""
    store = context.store
    needs = store.tasks_by_id(sorted({n for t in tasks for n in t.after}))
    runs = _newest_runs(store, tasks)
    progress = store.progress(list(runs))
    asking: dict[str, list[Message]] = {}
    for question in store.open_messages(MessageKind.QUESTION, limit=MOST_QUESTIONS):
        asking.setdefault(question.task, []).append(question)
    now = store.now()
    found = []
    for task in tasks:
        wanted = [needs[n] for n in task.after if n in needs]
        held = waits(task, wanted, asking.get(task.id, []), now=now)
        run = runs.get(task.run_id)
        found.append(_row(context, task, held, run, progress.get(task.run_id)))
    return found


def _newest_runs(store: Store, tasks: Sequence[Task]) -> dict[str, Run]:
    wanted = [t.run_id for t in tasks if t.run_id]
    if not wanted:
        return {}
    live = {run.id: run for run in store.live_runs()}
    return {run_id: live.get(run_id) or store.run(run_id) for run_id in wanted}


def _row(
    context: Context, task: Task, held: Sequence[Wait], run: Run | None, progress: Progress | None
) -> TaskRow:
    agent, coder, model = _who(context, task, run)
    spec = task.spec
    return TaskRow(
        id=task.id,
        title=task.title,
        status=_status(task, held, run),
        state=task.state,
        team=task.team,
        priority=spec.priority,
        labels=spec.labels,
        agent=agent,
        coder=coder,
        model=model,
        given=tuple(n for n in ("agent", "coder", "model") if getattr(spec, n)),
        project=task.project,
        cwd=spec.cwd,
        created_at=task.created_at,
        run=_run_now(run, progress) if run else None,
    )


def _who(context: Context, task: Task, run: Run | None) -> tuple[str, str, str]:
    """Who does it or did it last; of an open task, who would do it now."""
    if run is not None and task.state is not TaskState.OPEN:
        return run.choice.agent, run.choice.coder, run.choice.model
    try:
        choice = _choice(context, task)
    except FleetError:  # a project that is gone or broken is no reason not to list its tasks
        return task.spec.agent, task.spec.coder, task.spec.model
    return choice.agent, choice.coder, choice.model


def _choice(context: Context, task: Task) -> Choice:
    world = context.world(task.project)
    defaults = Defaults(world.settings.coder, world.settings.model)
    return choose(task.spec, world.fleet, defaults)[1]


def _status(task: Task, held: Sequence[Wait], run: Run | None) -> str:
    if task.state is TaskState.RUNNING:
        if run is not None and run.wanted:
            return "stopping"
        return "starting" if run is not None and run.state is RunState.CLAIMED else "running"
    if task.state is not TaskState.OPEN:
        return str(task.state)
    codes = {w.code for w in held}
    return next((shown for code, shown in HELD.items() if code in codes), "ready")


def _run_now(run: Run, progress: Progress | None) -> RunNow:
    ended, heard = run.outcome, progress
    usage = ended.usage if ended else heard.usage if heard else None
    return RunNow(
        id=run.id,
        started_at=run.started_at or None,
        ended_at=run.ended_at or None,
        heard_at=heard.at if heard else None,
        lines=heard.lines if heard else None,
        peak_context=max(heard.peak_context if heard else 0, usage.context if usage else 0) or None,
        usage=_usage(usage),
        last=ended.detail if ended else heard.last if heard else "",
    )


def _usage(usage: Usage | None) -> UsageRow:
    if usage is None:
        return UsageRow()
    cost = round(usage.usd * 1_000_000)
    return UsageRow(usage.input, usage.output, usage.cached, usage.context, cost)


def _run_row(run: Run) -> RunRow:
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
        started_at=run.started_at or None,
        ended_at=run.ended_at or None,
        ending=outcome.ending if outcome else "",
        detail=outcome.detail if outcome else "",
        usage=_usage(outcome.usage if outcome else None),
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
    if row.status == "ready":
        held = _no_room(context, task)
    return TaskDetail(
        task=row,
        prompt=task.prompt,
        author=task.author,
        spec=task.spec,
        parent=task.parent,
        children=tuple(child.id for child in children(store, task)),
        after=task.after,
        needed_by=tuple(store.dependents(task.id)),
        waits=tuple(WaitRow(w.code, w.why, w.fix) for w in held),
        runs=tuple(_run_row(r) for r in store.runs(task.id)),
        messages=tuple(message_row(m) for m in messages),
        failures=task.tally.failures,
        why=task.tally.why,
    )


def _no_room(context: Context, task: Task) -> tuple[Wait, ...]:
    """What keeps a task that nothing holds from starting on the hosts that there are."""
    try:
        world, choice = context.world(task.project), _choice(context, task)
    except FleetError as error:
        return (Wait(task.id, error.code, error.message, error.fix),)
    limit = context.world("").settings.max_concurrent
    hosts = tuple(Slot(f"host {host}", limit) for host in context.store.hosts())
    alone = (Slot(f"directory {task.spec.cwd}", 1),) if task.spec.in_place else ()
    needs = tuple(group for group in (hosts, model_slots(choice, world.fleet), alone) if group)
    held = {name: len(row.holders) for name, row in context.store.slots().items()}
    return schedule([Ask(task, choice, needs)], held).waits
