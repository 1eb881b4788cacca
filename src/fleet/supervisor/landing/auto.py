"""`land.auto`: the work of a task is queued to land in the very commit that makes it done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.event import Event, Kind
from fleet.domain.landing.landing import new_landing, new_train
from fleet.domain.task import TaskState
from fleet.operations.landing.race import is_contender
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.domain.landing.landing import LandingWish
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.ports import Change, Store


def queued(
    store: Store, task: Task, run: Run, onto: str, now: int, *, wish: LandingWish
) -> tuple[Task, list[Change], list[Event]]:
    """The task with its landing; as it was when it has no work that could land."""
    space, checkpoint = run.workspace, task.tally.checkpoint
    if task.state is not TaskState.DONE or task.tally.landing or space is None:
        return task, [], []
    if is_contender(store, task):
        return task, [], []
    onto = onto or space.onto
    if not (onto and space.repository and checkpoint) or checkpoint.commit in {"", space.base}:
        return task, [], []
    landing = new_landing(store.new_id("l"), task, space.repository, onto, wish, at=now)
    changes: list[Change] = [Put(landing)]
    if landing.train not in store.trains():
        changes.append(Put(new_train(landing)))
    about = {"landing": landing.id, "onto": onto, "force": ""}
    event = Event(Kind.LANDING_QUEUED, task.id, SUPERVISOR, now, "", about)
    return replace(task, tally=replace(task.tally, landing=landing.id)), changes, [event]
