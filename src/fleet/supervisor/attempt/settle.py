"""The one commit that ends a run: the run, its task, its slots, its parents, the events.

It also decides whether the run itself, a person or a node that went down caused the ending.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from fleet.domain.access import SUPERVISOR
from fleet.domain.addressing import is_aside
from fleet.domain.errors import Conflict, Unavailable
from fleet.domain.event import Event, Kind
from fleet.domain.message import Details, Message, MessageKind, MessageState
from fleet.domain.run import Ending, Outcome, Run, Slots, Wanted, end, release
from fleet.domain.schedule import credential
from fleet.domain.spending.budget import OPTIONS
from fleet.domain.task import RATE_LIMIT_PAUSE, SECOND, Retry, TaskState, settle
from fleet.operations.insight.usage import usage_change
from fleet.operations.tasks.commit import parent_changes, refused_words
from fleet.ports import Change, Put, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.fleet import Fleet, Node
    from fleet.domain.task import Task
    from fleet.ports import Nodes

MAX_TRIES = 50
RECENT = 60 * SECOND  # an outage of the gateway longer ago did not end the run
Queued: TypeAlias = "tuple[Task, list[Change], list[Event]]"


def end_run(
    store: Store,
    run_id: str,
    judged: Callable[[Run], Outcome],
    retry: Retry,
    *,
    jitter: float,
    provided: Callable[[], Sequence[Change] | None] = lambda: (),
    home: Callable[[Task, Run, int], Queued] = lambda task, _run, _now: (task, [], []),
    beside: Callable[[], Sequence[Change]] = lambda: (),
) -> None:
    """End the run once, even when other processes try too; a stop that comes meanwhile counts.

    `provided` gives the conditions of the commit, or None: then the run is not ended.
    `home` is given the settled task, and may queue its work to land in the same commit.
    `beside` gives what else that commit writes.
    """
    for _ in range(MAX_TRIES):
        run = store.run(run_id)
        conditions = provided()
        if not run.live or conditions is None:
            return
        outcome = judged(run)
        now = store.now()
        ended = end(run, outcome, at=now)
        changes: list[Change] = [*conditions, Put(ended), *beside()]
        changes += [Put(release(row, run.id)) for row in store.slots(run.slots).values()]
        events = [_event(Kind.RUN_ENDED, run, now, ending=outcome.ending, detail=outcome.detail)]
        task = store.task(run.task)
        changes.append(usage_change(store, task, run, outcome, now))
        if task.run_id == run.id and task.state is TaskState.RUNNING:
            settled = settle(
                task,
                outcome,
                retry=retry,
                now=now,
                jitter=jitter,
                waiting=_has_unheard_words(store, task),
                reviewed=run.wanted is Wanted.CLOSE,
                took=now - run.started_at if run.started_at else 0,
            )
            settled = _away_again(task, settled, run)
            settled, landing, news = home(settled, run, now)
            changes += landing
            changes += [Put(settled), *parent_changes(store, settled, now=now)]
            changes += refused_words(store, settled, now=now)
            why = {} if outcome.again else {"why": outcome.detail}  # it needs a person
            events.append(_event(Kind.TASK_SETTLED, run, now, state=settled.state, **why))
            more, facts = _follow_up(store, run, outcome, now)
            changes += more
            events += [*news, *facts]
        try:
            store.commit(changes, events)
        except Conflict:
            continue
        return
    raise Unavailable(f"{run_id} could not be settled: its records keep changing.")


def _away_again(before: Task, settled: Task, run: Run) -> Task:
    """Clear `landed` when the run has made new commits since: they can land, too."""
    point, old = settled.tally.checkpoint, before.tally.checkpoint
    commits = {"", old.commit if old else "", run.workspace.base if run.workspace else ""}
    if not settled.tally.landed or point is None or point.commit in commits:
        return settled
    return replace(settled, tally=replace(settled.tally, landed=""))


def is_recorded(store: Store, run: Run, kind: Kind) -> bool:
    """Whether this event of the run is in the log, perhaps from an earlier supervisor."""
    facts = store.events(task=run.task, limit=200, newest=True)
    return any(e.type == kind and e.run == run.id for e in facts)


def _has_unheard_words(store: Store, task: Task) -> bool:
    """Whether a message to this task waits that no run has heard; asides do not count."""
    return any(
        m.kind is MessageKind.WORDS and m.state is MessageState.OPEN and not is_aside(m)
        for m in store.messages(task.id)
    )


def _follow_up(
    store: Store, run: Run, outcome: Outcome, now: int
) -> tuple[list[Change], list[Event]]:
    """After a rate limit, pause the credential; after a spent budget, ask a person to continue."""
    if outcome.ending is Ending.RATE_LIMITED and not run.choice.node:
        name = credential(run.choice, run.host)
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
            details=Details(options=OPTIONS),
        )
        return [Put(question)], [_event(Kind.MESSAGE_ASKED, run, now, message=question.id)]
    return [], []


def _event(kind: Kind, run: Run, at: int, **data: object) -> Event:
    return Event(kind, run.task, SUPERVISOR, at, run.id, {k: str(v) for k, v in data.items()})


def blame(outcome: Outcome, run: Run, fleet: Fleet, nodes: Nodes, now: int, worked: int) -> Outcome:
    """Return the outcome as lost, which costs no attempt, when an outage ended the run.

    That is: its node, the node that the relay chose, the gateway or the relay was down. `now` is this
    machine's wall clock; `worked` is how long the run worked, by a clock that cannot be set.
    """
    if not run.choice.node or outcome.ending not in {Ending.FAILED, Ending.STALLED}:
        return outcome
    recent = min(worked, RECENT)
    last = nodes.last_request(fleet.gateway, run.id, run.choice.agent, now - recent)
    names = dict.fromkeys((run.choice.node, last.node if last else ""))
    why = next((w for name in names if (w := _down(fleet.nodes.get(name), nodes))), "")
    why = why or _interrupted(fleet, nodes, recent)
    if not why and last is not None and last.is_fault_of_nodes:
        why = f"Its last request was not answered ({last.error or 'status ' + str(last.status)})."
    if not why:
        return outcome
    detail = f"{why} {outcome.detail}".strip()
    return replace(outcome, ending=Ending.LOST, detail=detail, outage=True)


def _down(node: Node | None, nodes: Nodes) -> str:
    pulse = nodes.pulse(node) if node is not None else None
    down = pulse is not None and pulse.up is False
    return f"Its node {node.name} is down ({pulse.why})." if node and pulse and down else ""


def _interrupted(fleet: Fleet, nodes: Nodes, recent: int) -> str:
    """Why the gateway did not answer within the last `recent` microseconds; empty if it did."""
    pulse = nodes.gateway(fleet.gateway)
    if pulse.age is None:
        return ""
    if pulse.up is False:
        return f"The gateway cannot be used: {pulse.why}."
    return "The gateway was started anew meanwhile." if pulse.age * SECOND < recent else ""


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
