"""The wall clock is moved by hours while agents run, as a laptop's or a virtual machine's is.

What holds on one host: no run is ended by it, none is started twice, no lease is lost, every task
ends. A time limit counts what has passed, not what the clock says. A task that is postponed waits
until a time of day: set back, the clock makes it wait longer, and `fleet show` says how long.

On a shared store leases are judged by the server's clock alone; that one must not be moved.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from fleet.domain.task import TaskState
from tests.chaos.named_steps import KillSwitch
from tests.chaos.named_supervisor import NamedStore
from tests.chaos.simulator import Simulation
from tests.wait import until

if TYPE_CHECKING:
    from tests.chaos.crashing_home import CrashingHome

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


@pytest.fixture
def crashing(crashing):
    """Everybody looks at one clock, which can be moved."""
    store = NamedStore(crashing.store, KillSwitch([], ""))
    store.moved = crashing.moved
    crashing.supervised.client.app.store = crashing.supervised.store = crashing.store = store
    return crashing


def move(crashing: CrashingHome, seconds: int) -> None:
    mine = crashing.moved.with_suffix(".new")
    mine.write_text(str(seconds))
    mine.replace(crashing.moved)


def at_work(crashing: CrashingHome, *tasks: str) -> None:
    for task in tasks:
        crashing.wait_for(lambda task=task: _works(crashing, task), f"{task} at work")


def _works(crashing: CrashingHome, task: str) -> bool:
    """Or has: a question may be answered, and heard in the next run, before anybody looks."""
    runs = crashing.store.runs(task)
    return bool(runs and runs[0].started_at) and "begun" in crashing.supervised.transcript(task, 1)


@pytest.mark.parametrize("way", [HOURS, -HOURS])
def test_runs_go_on_and_end_as_they_would_have(crashing, way):
    tasks = [crashing.add(kind)[-1] for kind in ("plain", "gate", "lingers", "spawns", "asks")]
    crashing.start()
    at_work(crashing, *tasks)
    move(crashing, way)
    more = [crashing.add(kind)[-1] for kind in ("plain", "words")]
    at_work(crashing, *more)
    move(crashing, -way)
    crashing.add("plain")
    crashing.wait_for(crashing.all_over, "the end of every task")
    crashing.kill()
    crashing.finish()


@pytest.mark.parametrize("way", [HOURS, -HOURS])
def test_runs_are_adopted_when_the_clock_was_moved_meanwhile(crashing, way):
    (task,) = crashing.add("words")
    crashing.start()
    at_work(crashing, task)
    crashing.kill()
    move(crashing, way)
    crashing.finish()
    assert len(crashing.store.runs(task)) == 1


def test_an_answer_from_a_clock_that_was_ahead_is_heard(crashing):
    """It bears a later time than the run that is to hear it."""
    (task,) = crashing.add("asks")
    crashing.start()
    until(lambda: crashing.supervised.endings(task) == ["asked"], why=crashing.story)
    crashing.kill()
    move(crashing, HOURS)
    crashing.mind()
    move(crashing, 0)
    crashing.finish()


@pytest.mark.parametrize("way", [HOURS, -HOURS])
def test_a_time_limit_counts_the_time_that_has_passed(crashing, way):
    """Two seconds are over after two seconds, and not because of two hours that never were."""
    task = crashing.supervised.add("say begun", "sleep 60", time_limit=2, attempts=1)
    begun = time.monotonic()
    crashing.start()
    at_work(crashing, task)
    move(crashing, way)
    crashing.wait_for(lambda: crashing.supervised.state(task) == TaskState.FAILED, "its end")
    assert crashing.supervised.endings(task) == ["timed_out"]
    assert time.monotonic() - begun >= 2


def test_progress_is_reported_when_the_clock_was_set_back(crashing):
    task = crashing.supervised.add("say begun", "usage 100 1", "sleep 5", "usage 200 2", "sleep 60")
    crashing.start()
    crashing.wait_for(lambda: tokens(crashing, task) == 100, "the first report")
    move(crashing, -HOURS)
    crashing.wait_for(lambda: tokens(crashing, task) == 300, "the second report")


def tokens(crashing: CrashingHome, task: str) -> int:
    runs = crashing.store.runs(task)
    found = crashing.store.progress([r.id for r in runs])
    return sum(p.usage.input for p in found.values())


def test_a_postponed_task_waits_until_its_time_of_day_and_says_so(crashing):
    """Set back by two hours, the clock makes it wait for two more; set right again, it does not."""
    task = crashing.supervised.add("say begun", "fail 1 broken")
    crashing.supervised.env["FLEET_RUN_BACKOFF"] = "1"
    crashing.start()
    crashing.wait_for(lambda: crashing.supervised.endings(task) == ["failed"], "its first failure")
    move(crashing, -HOURS)
    longer = crashing.supervised.add("say begun", "sleep 1.5")  # than the task would have waited
    crashing.wait_for(lambda: crashing.supervised.state(longer) == TaskState.DONE, "another's end")
    assert crashing.supervised.endings(task) == ["failed"]
    left = (crashing.store.task(task).tally.not_before - crashing.store.now()) / 1_000_000
    assert HOURS - 100 < left < HOURS + 5
    move(crashing, 0)
    crashing.wait_for(lambda: crashing.supervised.state(task) == TaskState.DONE, "its end")
    assert crashing.supervised.endings(task) == ["failed", "succeeded"]
