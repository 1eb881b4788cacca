"""Two supervisors on one store: of one home, where the lock decides, and of two, where leases do."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest

from fleet.app import App
from fleet.base import machine
from fleet.client import LocalClient
from fleet.domain.task import TaskState
from tests.chaos.crashing_home import CrashingHome
from tests.chaos.invariants import living_marks
from tests.contract.launching import is_alive
from tests.wait import until

TIMES = 50
LEASE = 6.0  # seconds of a host's; a keeper's is two thirds of that
WORK = "run sh -c 'case $FLEET_RUN_ID in *.1) sleep {seconds};; esac'"  # a second run has none


def test_of_two_that_start_at_once_one_supervises_and_the_other_is_refused(crashing):
    kinds = ("plain", "words", "asks", "gate", "dependent")
    for number in range(TIMES):
        if number % 5 == 0:
            crashing.add(kinds[number // 5 % len(kinds)])
        both = {crashing.start(), crashing.start()}
        ended = until(lambda both=both: statuses(crashing, both), why=crashing.story)
        assert [*ended.values()] == [1], crashing.story()
        (crashing.pid,) = both - {*ended}
        until(crashing.supervises, why=crashing.story)
        assert crashing.supervised.client.app.home.supervisor_pid() == crashing.pid
        crashing.kill()
        crashing.check()
    assert crashing.supervised.said().count("(already_running)") == TIMES
    crashing.finish()


def statuses(crashing: CrashingHome, pids: set[int]) -> dict[int, int]:
    asked = {pid: crashing.forker.status(pid) for pid in pids}
    return {pid: status for pid, status in asked.items() if status is not None}


def joined(place, forker, url: str, repo=None) -> CrashingHome:
    """A host with a home of its own, on the shared store."""
    made = CrashingHome(place, forker, 0, settings={"FLEET_STORE_URL": url})
    supervised = made.supervised
    supervised.store.close()
    supervised.repo = repo or supervised.repo
    supervised.client = LocalClient(App(supervised.repo, supervised.env))
    made.store = supervised.store = supervised.client.app.store
    return made


@pytest.fixture
def hosts(tmp_path, forker, postgres_url):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = joined(tmp_path / "one", forker, postgres_url)
    two = joined(tmp_path / "two", forker, postgres_url, one.supervised.repo)
    yield one, two
    two.close()
    one.close()


def begin(one: CrashingHome, two: CrashingHome, seconds: int = 60) -> list[str]:
    """Three tasks at work for so long on the one host, and the other looks on."""
    work = WORK.format(seconds=seconds)
    script = ("say begun", "write a.txt x", "commit a", work, "write b.txt x", "commit b")
    tasks = [one.supervised.add(*script) for _ in range(3)]
    one.start(lease=LEASE)
    for task in tasks:
        until(lambda task=task: "begun" in one.supervised.transcript(task), why=one.story)
        until(lambda task=task: one.supervised.run(task).started_at, why=one.story)
    two.start(lease=LEASE)
    until(two.supervises, why=two.story)
    return tasks


def keepers(crashing: CrashingHome) -> list[int]:
    return [
        crashing.supervised.keeper(f.parent.name)
        for f in crashing.supervised.home.glob("runs/*/keeper.json")
    ]


def never_two(one: CrashingHome, two: CrashingHome) -> None:
    """No task is worked on in two runs at once."""
    seen = [working(one, two), working(one, two)]
    twice = [{task for task, count in found.items() if count > 1} for found in seen]
    assert not twice[0] & twice[1], seen


def working(one: CrashingHome, two: CrashingHome) -> Counter:
    marks = {}
    for crashing in (one, two):
        for file in crashing.supervised.home.glob("runs/*/keeper.json"):
            with suppress(FileNotFoundError, ValueError):
                marks[json.loads(file.read_text()).get("mark", "")] = file.parent.name
    runs = {marks[mark] for mark in living_marks() if mark in marks}
    return Counter(run.split(".")[0] for run in runs)


def taken_over(one: CrashingHome, two: CrashingHome, tasks: list[str]) -> None:
    """Every task is done, by the other host, and once."""

    def over() -> bool:
        never_two(one, two)
        return all(two.supervised.state(t) == TaskState.DONE for t in tasks)

    until(over, why=two.story)
    for task in tasks:
        first, second = two.store.runs(task)
        assert two.supervised.endings(task) == ["lost", "succeeded"], two.supervised.story(task)
        assert first.host != second.host
        assert second.workspace.branch != first.workspace.branch
        found = Counter(two.supervised.commits(second.workspace.branch))
        assert (found["a"], found["b"]) == (1, 1), found
    ended = Counter(e.run for e in two.store.events(limit=10_000) if e.type == "run.ended")
    assert set(ended.values()) == {1}
    assert not [row for row in two.store.slots().values() if row.holders]


def both_work(one: CrashingHome, two: CrashingHome) -> None:
    """A host that is back takes tasks again, and nothing of before is left anywhere."""
    until(one.supervises, why=one.story)
    two.kill()
    task = one.supervised.add("say begun", "write c.txt x", "commit c")
    until(lambda: one.supervised.state(task) == TaskState.DONE, why=one.story)
    assert one.supervised.endings(task) == ["succeeded"]
    assert "bug in fleet" not in one.supervised.said() + two.supervised.said()
    until(
        lambda: not one.supervised.strays() and not two.supervised.strays(),
        why="no process is left",
    )


@pytest.mark.real
def test_when_a_machine_dies_another_takes_its_tasks_over(hosts):
    one, two = hosts
    tasks = begin(one, two)
    coders = one.supervised.strays()
    one.kill()
    for pid in (*keepers(one), *coders):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    taken_over(one, two, tasks)
    one.start(lease=LEASE)
    both_work(one, two)


@pytest.mark.real
def test_keepers_end_their_coders_before_another_host_starts_their_tasks(hosts):
    one, two = hosts
    tasks = begin(one, two)
    one.kill()
    coders = one.supervised.strays()
    until(lambda: len(two.store.runs(tasks[0])) == 2, why=two.story)
    assert not [pid for pid in coders if is_alive(pid)]
    taken_over(one, two, tasks)
    one.start(lease=LEASE)
    both_work(one, two)


@pytest.mark.real
def test_a_host_that_wakes_up_after_its_lease_writes_nothing_about_its_runs(hosts):
    one, two = hosts
    tasks = begin(one, two)
    coders = one.supervised.strays()
    os.kill(one.pid, signal.SIGSTOP)  # in a transaction, perhaps: the server ends that in 30 s
    until(lambda: len(two.store.runs(tasks[0])) == 2, why=two.story)
    assert not [pid for pid in coders if is_alive(pid)]
    before = {task: two.store.runs(task)[0] for task in tasks}
    os.kill(one.pid, signal.SIGCONT)
    taken_over(one, two, tasks)
    assert {task: two.store.runs(task)[0] for task in tasks} == before
    assert one.forker.status(one.pid) is None
    assert not any(machine.marked(mark) for mark in one.supervised.marks())
    both_work(one, two)


@pytest.mark.real
def test_a_host_that_was_killed_and_came_back_in_time_keeps_its_runs(hosts):
    one, two = hosts
    tasks = begin(one, two, seconds=3)
    one.kill()
    time.sleep(LEASE / 4)
    one.start(lease=LEASE)
    for task in tasks:
        until(
            lambda task=task: one.supervised.state(task) == TaskState.DONE,
            why=one.story,
        )
        assert one.supervised.endings(task) == ["succeeded"]
        assert len(one.store.runs(task)) == 1
    both_work(one, two)
