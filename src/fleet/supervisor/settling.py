"""The one commit that ends a run: the run, its task, the capacity it held, its parents, the facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.errors import Conflict, Unavailable
from fleet.domain.event import Event
from fleet.domain.run import Outcome, Run, end, release
from fleet.domain.task import Retry, TaskState, settle
from fleet.operations.parents import parent_changes
from fleet.ports import Change, Put, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TRIES = 50


def end_run(
    store: Store,
    run_id: str,
    judged: Callable[[Run], Outcome],
    retry: Retry,
    *,
    jitter: float,
    provided: Callable[[], Sequence[Change] | None] = lambda: (),
) -> None:
    """End it once, whoever else is at it; what somebody wants of it meanwhile is heard.

    `provided` gives what must still be so when it is written, or None: then it is not ended.
    """
    for _ in range(TRIES):
        run = store.run(run_id)
        conditions = provided()
        if not run.live or conditions is None:
            return
        outcome = judged(run)
        now = store.now()
        ended = end(run, outcome, at=now)
        changes: list[Change] = [*conditions, Put(ended)]
        changes += [Put(release(row, run.id)) for row in store.slots(run.slots).values()]
        events = [_event("run.ended", run, now, ending=outcome.ending, detail=outcome.detail)]
        task = store.task(run.task)
        if task.run_id == run.id and task.state is TaskState.RUNNING:
            settled = settle(task, outcome, retry=retry, now=now, jitter=jitter)
            changes += [Put(settled), *parent_changes(store, settled, now=now)]
            events.append(_event("task.settled", run, now, state=settled.state))
        try:
            store.commit(changes, events)
        except Conflict:
            continue
        return
    raise Unavailable(f"{run_id} could not be settled: its records keep changing.")


def _event(kind: str, run: Run, at: int, **data: object) -> Event:
    return Event(kind, run.task, SUPERVISOR, at, run.id, {k: str(v) for k, v in data.items()})
