"""One task, with its runs, its messages and why it is not running."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.addressing import may_read
from fleet.domain.choice import model_slots
from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError
from fleet.domain.schedule import Ask, Slot, Wait, credential, schedule, waits, within_parent
from fleet.domain.task import (
    Mode,
    Spec,
)  # imported at run time: a client reads the types of a reply
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import reader_of
from fleet.operations.messages.rows import MessageRow, message_row
from fleet.operations.shared.choice import choose_for
from fleet.operations.shared.names import the_task
from fleet.operations.tasks.commit import children
from fleet.operations.tasks.rows import TaskRow, UsageRow, rows, usage_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.domain.run import Host, Run
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context


MOST_MESSAGES = 200


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
    claimed_at: Time
    started_at: Time | None
    ended_at: Time | None
    ending: str
    detail: str
    usage: UsageRow


@dataclass(frozen=True, slots=True)
class WaitRow:
    code: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """`spec` is what the task asks for; empty and zero fields take the value of the settings.

    `updated_at`: the time of the newest event about it. `messages`: the newest 200.
    """

    task: TaskRow
    prompt: str
    author: str
    spec: Spec
    parent: str
    children: tuple[str, ...]
    after: tuple[str, ...]
    needed_by: tuple[str, ...]
    waits: tuple[WaitRow, ...]
    runs: tuple[RunRow, ...]
    messages: tuple[MessageRow, ...]
    failures: int
    why: str
    updated_at: Time


@dataclass(frozen=True, slots=True)
class ShowTask(Request[TaskDetail]):
    """`brief`: the task itself, without its runs, its messages and what it waits for."""

    task: str
    brief: bool = False


def show(context: Context, request: ShowTask) -> TaskDetail:
    task = the_task(context, request.task, Permission.READ)
    detail = _brief(context, task)
    return detail if request.brief else _whole(context, task, detail)


def _brief(context: Context, task: Task) -> TaskDetail:
    (row,) = rows(context, [task])
    latest = context.store.events(task=task.id, limit=1, newest=True)
    return TaskDetail(
        task=row,
        prompt=task.prompt,
        author=task.author,
        spec=task.spec,
        parent=task.parent,
        children=(),
        after=task.after,
        needed_by=(),
        waits=(),
        runs=(),
        messages=(),
        failures=task.tally.failures,
        why=task.tally.why,
        updated_at=latest[0].at if latest else task.created_at,
    )


def _whole(context: Context, task: Task, detail: TaskDetail) -> TaskDetail:
    store, reader = context.store, reader_of(context.store, context.actor)
    messages = store.messages(task.id, newest=MOST_MESSAGES)
    if detail.task.status == "ready":
        reasons = _no_room(context, task)
    else:
        needs, questions = store.tasks_by_id(task.after), store.open_questions([task.id])
        reasons = waits(
            task, [needs[n] for n in task.after if n in needs], questions, now=store.now()
        )
    return replace(
        detail,
        children=tuple(child.id for child in children(store, task)),
        needed_by=tuple(store.dependents(task.id)),
        waits=tuple(WaitRow(w.code, w.why, w.fix) for w in reasons),
        runs=tuple(_run_row(r) for r in store.runs(task.id)),
        messages=tuple(message_row(m) for m in messages if may_read(m, reader)),
    )


def _run_row(run: Run) -> RunRow:
    outcome, workspace = run.outcome, run.workspace
    return RunRow(
        id=run.id,
        state=run.state,
        coder=run.choice.coder,
        model=run.choice.model,
        node=run.choice.node,
        host=run.host,
        branch=workspace.branch if workspace else "",
        path=workspace.path if workspace else "",
        claimed_at=run.claimed_at,
        started_at=run.started_at or None,
        ended_at=run.ended_at or None,
        ending=outcome.ending if outcome else "",
        detail=outcome.detail if outcome else "",
        usage=usage_row(outcome.usage if outcome else None),
    )


def _no_room(context: Context, task: Task) -> tuple[Wait, ...]:
    """What keeps a ready task from starting: missing capacity, or wrong settings."""
    try:
        world = context.world(task.project)
        task = replace(task, spec=context.edited(task))
        choice = choose_for(world, task)
    except FleetError as error:
        return (Wait(task.id, error.code, error.message, error.fix),)
    store = context.store
    limit = context.world("").settings.max_concurrent
    hosts = store.hosts()
    queued = task.spec.mode == Mode.QUEUED or task.spawned
    rooms = tuple(Slot(f"host {h.id}", h.room or limit) for h in hosts.values() if queued)
    alone = (Slot(f"directory {task.spec.cwd}", 1),) if task.spec.in_place else ()
    swarm = within_parent(store.task(task.parent) if task.parent else None)
    servings = model_slots(choice, world.fleet, _down(hosts.values(), store.now()))
    needs = tuple(group for group in (rooms, swarm, servings, alone) if group)
    ask = Ask(task, choice, needs, "" if servings else credential(choice))
    return schedule([ask], store.slots(sorted(ask.names)), now=store.now()).waits


def _down(hosts: Iterable[Host], now: int) -> dict[str, str]:
    """The nodes that no live host can reach, and why."""
    views = [dict(_seen(line) for line in h.down) for h in hosts if h.lease_until > now]
    if not views:
        return {}
    return {address: why for address, why in views[0].items() if all(address in v for v in views)}


def _seen(line: str) -> tuple[str, str]:
    address, _, why = line.partition(" ")
    return address, why


OPERATIONS = (Operation("task.show", ShowTask, Permission.READ, show, "Show one task."),)
