"""The wall clock is moved by hours while agents run, as a laptop's or a virtual machine's is.

What holds on one host: no run is ended by it, none is started twice, no lease is lost, every task
ends. A time limit counts what has passed, not what the clock says. A task that is postponed waits
until a time of day: set back, the clock makes it wait longer, and `fleet show` says how long.

On a shared store leases are judged by the server's clock alone; that one must not be moved.
"""

from __future__ import annotations

import os
import time

import pytest
from field import Field
from named_steps import Blade
from named_supervisor import NamedStore
from nursery import Nursery
from simulator import Simulation

from fleet.domain.task import TaskState

SEEDS = int(os.environ.get("SEEDS", "600"))
BATCH = 50
HOURS = 7200


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(start, marks=() if start < BATCH else pytest.mark.slow)
        for start in range(0, SEEDS, BATCH)
    ],
)
def test_one_host_loses_nothing_however_its_clock_is_moved_while_it_crashes(start):
    for seed in range(200_000 + start, 200_000 + start + BATCH):
        Simulation(seed, moves=True).run()


@pytest.fixture(scope="module")
def nursery():
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def field(tmp_path, nursery):
    """Everybody looks at one clock, which can be moved."""
    made = Field(tmp_path, nursery, 0)
    store = NamedStore(made.store, Blade([], ""))
    store.moved = made.moved
    made.yard.client.app.store = made.yard.store = made.store = store
    yield made
    made.close()


def move(field: Field, seconds: int) -> None:
    mine = field.moved.with_suffix(".new")
    mine.write_text(str(seconds))
    mine.replace(field.moved)


def at_work(field: Field, *tasks: str) -> None:
    for task in tasks:
        field.wait_for(lambda task=task: _works(field, task), f"{task} at work")


def _works(field: Field, task: str) -> bool:
    """Or has: a question may be answered, and heard in the next run, before anybody looks."""
    runs = field.store.runs(task)
    return bool(runs and runs[0].started_at) and "begun" in field.yard.transcript(task, 1)


@pytest.mark.parametrize("way", [HOURS, -HOURS])
def test_runs_go_on_and_end_as_they_would_have(field, way):
    tasks = [field.add(kind)[-1] for kind in ("plain", "gate", "lingers", "spawns", "asks")]
    field.start()
    at_work(field, *tasks)
    move(field, way)
    more = [field.add(kind)[-1] for kind in ("plain", "words")]
    at_work(field, *more)
    move(field, -way)
    field.add("plain")
    field.wait_for(field.all_over, "the end of every task")
    field.kill()
    field.finish()


@pytest.mark.parametrize("way", [HOURS, -HOURS])
def test_runs_are_adopted_when_the_clock_was_moved_meanwhile(field, way):
    (task,) = field.add("words")
    field.start()
    at_work(field, task)
    field.kill()
    move(field, way)
    field.finish()
    assert len(field.store.runs(task)) == 1


def test_an_answer_from_a_clock_that_was_ahead_is_heard(field):
    """It bears a later time than the run that is to hear it."""
    (task,) = field.add("asks")
    field.start()
    while field.yard.endings(task) != ["asked"]:
        time.sleep(0.01)
    field.kill()
    move(field, HOURS)
    field.mind()
    move(field, 0)
    field.finish()


@pytest.mark.parametrize("way", [HOURS, -HOURS])
def test_a_time_limit_counts_the_time_that_has_passed(field, way):
    """Two seconds are over after two seconds, and not because of two hours that never were."""
    task = field.yard.add("say begun", "sleep 60", time_limit=2, attempts=1)
    field.start()
    at_work(field, task)
    begun = time.monotonic()
    move(field, way)
    time.sleep(0.7)
    assert field.yard.state(task) == TaskState.RUNNING, field.yard.story(task)
    field.wait_for(lambda: field.yard.state(task) == TaskState.FAILED, "its end", timeout=10)
    assert field.yard.endings(task) == ["timed_out"]
    assert 0.7 < time.monotonic() - begun < 8


def test_progress_is_reported_when_the_clock_was_set_back(field):
    task = field.yard.add("say begun", "usage 100 1", "sleep 1.2", "usage 200 2", "sleep 60")
    field.start()
    field.wait_for(lambda: tokens(field, task) == 100, "the first report")
    move(field, -HOURS)
    field.wait_for(lambda: tokens(field, task) == 300, "the second report", timeout=8)


def tokens(field: Field, task: str) -> int:
    runs = field.store.runs(task)
    found = field.store.progress([r.id for r in runs])
    return sum(p.usage.input for p in found.values())


def test_a_postponed_task_waits_until_its_time_of_day_and_says_so(field):
    """Set back by two hours, the clock makes it wait for two more; set right again, it does not."""
    task = field.yard.add("say begun", "fail 1 broken")
    field.yard.env["FLEET_RUN_BACKOFF"] = "1"
    field.start()
    field.wait_for(lambda: field.yard.endings(task) == ["failed"], "its first failure")
    move(field, -HOURS)
    time.sleep(2)
    assert field.yard.endings(task) == ["failed"]
    left = (field.store.task(task).tally.not_before - field.store.now()) / 1_000_000
    assert HOURS - 100 < left < HOURS + 5
    move(field, 0)
    field.wait_for(lambda: field.yard.state(task) == TaskState.DONE, "its end")
    assert field.yard.endings(task) == ["failed", "succeeded"]
