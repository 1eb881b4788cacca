"""One task, with its runs, its messages and why it is not running."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.addressing import may_read
from fleet.domain.choice import model_slots, no_program, program_owner
from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError, Refused
from fleet.domain.hosts.labels import ABSENT, DRAINED, NO_HOST, WITHOUT, unfit
from fleet.domain.inbox import landing_item
from fleet.domain.landing.landing import LandingState, blocker_of
from fleet.domain.schedule import (
    ReadyTask,
    Slot,
    Wait,
    credential,
    on_host,
    schedule,
    waits,
    within_parent,
)
from fleet.domain.task import (
    Mode,
    Spec,
    TaskState,
)  # imported at run time: a client reads the types of a reply
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import reader_of
from fleet.operations.messages.rows import MessageRow, message_row
from fleet.operations.shared.choice import check_gate, choose_for
from fleet.operations.shared.names import the_task
from fleet.operations.tasks.commit import children
from fleet.operations.tasks.rows import TaskRow, UsageRow, rows, usage_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.domain.run import Host, Progress, Run
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Store

MOST_MESSAGES = 200
MOST_REASONS = 10  # hosts whose reasons are listed


@dataclass(frozen=True, slots=True)
class RunRow:
    """`commit`: of the checkpoint with which it ended; empty: there is none."""

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
    commit: str = ""


@dataclass(frozen=True, slots=True)
class WaitRow:
    code: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """`spec` is what the task asks for; empty and zero fields take the value of the settings.

    `needs`: the tasks `after`, as one writes them: `t-3:landed` until the work of t-3 has landed.
    `updated_at`: the time of the newest event about it. `messages`: the newest 200.
    """

    task: TaskRow
    prompt: str
    author: str
    spec: Spec
    parent: str
    children: tuple[str, ...]
    after: tuple[str, ...]
    needs: tuple[str, ...]
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
        needs=task.needs,
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
        reasons = no_room(context, task)
    elif task.tally.landing and task.state is TaskState.DONE:
        reasons = (_landing_wait(context, task),)
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
        runs=_run_rows(store, task),
        messages=tuple(message_row(m) for m in messages if may_read(m, reader)),
    )


def _landing_wait(context: Context, task: Task) -> Wait:
    """Why the task's work has not landed yet, and the command to type."""
    landing = context.store.landing(task.tally.landing)
    if landing.state is LandingState.HELD:
        item = landing_item(task, landing)
        return Wait(task.id, "held", item.words, item.actions[0].command)
    train = context.store.trains().get(landing.train)
    why = (
        landing.why
        or (blocker_of(train) if train else "")
        or f"It waits to land on {landing.branch}."
    )
    return Wait(task.id, str(landing.state), why, f"fleet land show {landing.id}")


def _run_rows(store: Store, task: Task) -> tuple[RunRow, ...]:
    runs = store.runs(task.id)
    progress = store.progress([run.id for run in runs if run.live])
    return tuple(_run_row(run, progress.get(run.id)) for run in runs)


def _run_row(run: Run, progress: Progress | None) -> RunRow:
    """The row of a run; `progress` has what a live run has used so far."""
    outcome, workspace = run.outcome, run.workspace
    usage = outcome.usage if outcome else progress.usage if progress else None
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
        usage=usage_row(usage),
        commit=outcome.checkpoint.commit if outcome and outcome.checkpoint else "",
    )


def no_room(context: Context, task: Task) -> tuple[Wait, ...]:
    """What keeps a ready task from starting: missing capacity, or wrong settings."""
    try:
        world = context.world(task.project)
        task = replace(task, spec=context.edited(task))
        choice = choose_for(world, task)
        hosts = context.store.hosts()
        check_gate(task, world)
        owner = program_owner(choice, world.fleet.agent(choice.agent))
        if program := missing_programs(hosts.values(), context.store.now()).get(owner):
            raise no_program(program)
        check_hosts(hosts.values(), task, owner, context.store.now())
    except FleetError as error:
        return (Wait(task.id, error.code, error.message, error.fix),)
    store = context.store
    limit = context.world("").settings.max_concurrent
    queued = task.spec.mode == Mode.QUEUED or task.spawned
    rooms = tuple(Slot(f"host {h.id}", h.room or limit) for h in hosts.values() if queued)
    ids = [*hosts] or [""]
    directory = f"directory {task.spec.cwd}" if task.spec.in_place else ""
    alone = tuple(Slot(on_host(directory, host), 1) for host in ids if directory)
    swarm = within_parent(store.task(task.parent) if task.parent else None)
    servings = model_slots(choice, world.fleet, down_nodes(hosts.values(), store.now()), ids)
    needs = tuple(group for group in (rooms, swarm, servings, alone) if group)
    asks = [
        ReadyTask(task, choice, needs, "" if servings else credential(choice, host)) for host in ids
    ]
    taken = store.slots(sorted({name for ask in asks for name in ask.names}))
    reasons = [schedule([ask], taken, now=store.now()).waits for ask in asks]
    return min(reasons, key=len)  # one host that could start it is enough


def check_hosts(hosts: Iterable[Host], task: Task, owner: str, now: int) -> None:
    """Raise `Refused` when no live host can do the task, with the reason of each."""
    awake = [host for host in hosts if host.holder and host.lease_until > now]
    reasons = [(host, unfit(host, task, owner)) for host in awake]
    if reasons and all(why for _, why in reasons):
        each = "; ".join(f"{host.id}: {why}" for host, why in reasons[:MOST_REASONS])
        rest = f"; and {len(reasons) - MOST_REASONS} more" if reasons[MOST_REASONS:] else ""
        fix = "Start `fleet run` on one that can."
        if any(why == WITHOUT[ABSENT] for _, why in reasons):
            fix = "Clone the project on one of them, and type `fleet status` in the clone there."
        if drained := next((host.id for host, why in reasons if why == DRAINED), ""):
            fix = f"fleet host resume {drained}"
        raise Refused(f"No host can run it. {each}{rest}.", fix=fix, code=NO_HOST)


def down_nodes(hosts: Iterable[Host], now: int) -> dict[str, str]:
    """The nodes that no live host can reach, and why."""
    return _of_all(host.down for host in hosts if host.lease_until > now)


def missing_programs(hosts: Iterable[Host], now: int) -> dict[str, str]:
    """By owner (see `program_owner`), the program that no live host finds."""
    return _of_all(host.missing for host in hosts if host.lease_until > now)


def _of_all(lines: Iterable[tuple[str, ...]]) -> dict[str, str]:
    """The lines that all hosts have in common, by the first word of the line."""
    views = [dict(map(_seen, of_host)) for of_host in lines]
    if not views:
        return {}
    return {name: rest for name, rest in views[0].items() if all(name in view for view in views)}


def _seen(line: str) -> tuple[str, str]:
    address, _, why = line.partition(" ")
    return address, why


OPERATIONS = (Operation("task.show", ShowTask, Permission.READ, show, "Show one task."),)
