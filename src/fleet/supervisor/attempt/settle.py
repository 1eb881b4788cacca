"""The one commit that ends a run: the run, its task, its slots, its parents, the events.

It also decides whether the run itself, a person or a node that went down caused the ending.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.addressing import is_aside
from fleet.domain.budget import OPTIONS
from fleet.domain.errors import Conflict, Unavailable
from fleet.domain.event import Event, Kind
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Ending, Outcome, Run, Slots, Wanted, end, release
from fleet.domain.schedule import credential
from fleet.domain.task import RATE_LIMIT_PAUSE, Retry, TaskState, settle
from fleet.operations.tasks.commit import parent_changes, refused_words
from fleet.ports import Change, Put, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.fleet import Fleet
    from fleet.domain.task import Task
    from fleet.ports import Nodes

MAX_TRIES = 50


def end_run(
    store: Store,
    run_id: str,
    judged: Callable[[Run], Outcome],
    retry: Retry,
    *,
    jitter: float,
    provided: Callable[[], Sequence[Change] | None] = lambda: (),
) -> None:
    """End the run once, even when other processes try too; a stop that comes meanwhile counts.

    `provided` gives the conditions of the commit, or None: then the run is not ended.
    """
    for _ in range(MAX_TRIES):
        run = store.run(run_id)
        conditions = provided()
        if not run.live or conditions is None:
            return
        outcome = judged(run)
        now = store.now()
        ended = end(run, outcome, at=now)
        changes: list[Change] = [*conditions, Put(ended)]
        changes += [Put(release(row, run.id)) for row in store.slots(run.slots).values()]
        events = [_event(Kind.RUN_ENDED, run, now, ending=outcome.ending, detail=outcome.detail)]
        task = store.task(run.task)
        if task.run_id == run.id and task.state is TaskState.RUNNING:
            settled = settle(
                task,
                outcome,
                retry=retry,
                now=now,
                jitter=jitter,
                waiting=_has_unheard_words(store, task),
                took=now - run.started_at if run.started_at else 0,
            )
            changes += [Put(settled), *parent_changes(store, settled, now=now)]
            changes += refused_words(store, settled, now=now)
            events.append(_event(Kind.TASK_SETTLED, run, now, state=settled.state))
            more, facts = _follow_up(store, run, outcome, now)
            changes += more
            events += facts
        try:
            store.commit(changes, events)
        except Conflict:
            continue
        return
    raise Unavailable(f"{run_id} could not be settled: its records keep changing.")


def is_recorded(store: Store, run: Run, kind: Kind) -> bool:
    """Whether this event of the run was written, perhaps by an earlier supervisor."""
    facts = store.events(task=run.task, limit=200, newest=True)
    return any(e.type == kind and e.run == run.id for e in facts)


def _has_unheard_words(store: Store, task: Task) -> bool:
    """Whether words sent to this task alone wait that no run has heard."""
    return any(
        m.kind is MessageKind.WORDS and m.state is MessageState.OPEN and not is_aside(m)
        for m in store.messages(task.id)
    )


def _follow_up(
    store: Store, run: Run, outcome: Outcome, now: int
) -> tuple[list[Change], list[Event]]:
    """A rate limit also parks the credential; a spent budget also asks a person."""
    if outcome.ending is Ending.RATE_LIMITED and not run.choice.node:
        name = credential(run.choice)
        row = store.slots([name]).get(name) or Slots(name, 0)
        until = max(row.parked_until, outcome.resume_at or now + RATE_LIMIT_PAUSE)
        return [Put(replace(row, parked_until=until, why=outcome.detail[:200]))], []
    if outcome.ending is Ending.OVER_BUDGET:
        question = Message(
            id=store.new_id("m"),
            version=0,
            task=run.task,
            author=SUPERVISOR,
            kind=MessageKind.QUESTION,
            text=f"The task has reached its budget. {outcome.detail} Continue?",
            state=MessageState.OPEN,
            at=now,
            options=OPTIONS,
        )
        return [Put(question)], [_event(Kind.MESSAGE_ASKED, run, now, message=question.id)]
    return [], []


def _event(kind: Kind, run: Run, at: int, **data: object) -> Event:
    return Event(kind, run.task, SUPERVISOR, at, run.id, {k: str(v) for k, v in data.items()})


def blame(outcome: Outcome, run: Run, fleet: Fleet, nodes: Nodes) -> Outcome:
    """A run whose node went down is lost, not failed, and costs no attempt."""
    node = fleet.nodes.get(run.choice.node)
    if node is None or outcome.ending not in {Ending.FAILED, Ending.STALLED}:
        return outcome
    pulse = nodes.pulse(node)
    if pulse.up is not False:
        return outcome
    why = f"Its node {node.name} is down ({pulse.why}). {outcome.detail}"
    return replace(outcome, ending=Ending.LOST, detail=why)


def wanted_ending(run: Run, otherwise: Ending) -> Ending:
    """How a run that never started ends: as a person wanted, else `otherwise`."""
    match run.wanted:
        case Wanted.CANCEL:
            return Ending.CANCELLED
        case Wanted.STOP:
            return Ending.STOPPED
        case Wanted.YIELD:
            return Ending.YIELDED
    return otherwise
