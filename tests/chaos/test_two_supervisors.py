"""Two supervisors on one store: of one home, where the lock decides, and of two, where leases do."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest
from field import Field
from holds import living_marks
from nursery import Nursery

from contract.launching import is_alive, until
from fleet.app import App
from fleet.base import machine
from fleet.client import Client
from fleet.domain.task import TaskState

TIMES = 50
LEASE = 6.0  # seconds of a host's; a keeper's is two thirds of that
WORK = "run sh -c 'case $FLEET_RUN_ID in *.1) sleep {seconds};; esac'"  # a second run has none


@pytest.fixture(scope="module")
def nursery():
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def field(tmp_path, nursery):
    made = Field(tmp_path, nursery, 0)
    yield made
    made.close()


def test_of_two_that_start_at_once_one_supervises_and_the_other_is_refused(field):
    kinds = ("plain", "words", "asks", "gate", "dependent")
    for number in range(TIMES):
        if number % 5 == 0:
            field.add(kinds[number // 5 % len(kinds)])
        both = {field.start(), field.start()}
        ended = until(lambda both=both: statuses(field, both), why=field.story)
        assert [*ended.values()] == [1], field.story()
        (field.pid,) = both - {*ended}
        until(field.supervises, why=field.story)
        assert field.yard.client.app.home.supervisor_pid() == field.pid
        field.kill()
        field.check()
    assert field.yard.said().count("(already_running)") == TIMES
    field.finish()


def statuses(field: Field, pids: set[int]) -> dict[int, int]:
    asked = {pid: field.nursery.status(pid) for pid in pids}
    return {pid: status for pid, status in asked.items() if status is not None}


def joined(place, nursery, url: str, repo=None) -> Field:
    """A host with a home of its own, on the shared store."""
    made = Field(place, nursery, 0, settings={"FLEET_STORE_URL": url})
    yard = made.yard
    yard.store.close()
    yard.repo = repo or yard.repo
    yard.client = Client(App(yard.repo, yard.env))
    made.store = yard.store = yard.client.app.store
    return made


@pytest.fixture
def hosts(tmp_path, nursery, postgres_url):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = joined(tmp_path / "one", nursery, postgres_url)
    two = joined(tmp_path / "two", nursery, postgres_url, one.yard.repo)
    yield one, two
    two.close()
    one.close()


def begin(one: Field, two: Field, seconds: int = 60) -> list[str]:
    """Three tasks at work for so long on the one host, and the other looks on."""
    work = WORK.format(seconds=seconds)
    script = ("say begun", "write a.txt x", "commit a", work, "write b.txt x", "commit b")
    tasks = [one.yard.add(*script) for _ in range(3)]
    one.start(lease=LEASE)
    for task in tasks:
        until(lambda task=task: "begun" in one.yard.transcript(task), why=one.story)
        until(lambda task=task: one.yard.run(task).started_at, why=one.story)
    two.start(lease=LEASE)
    until(two.supervises, why=two.story)
    return tasks


def keepers(field: Field) -> list[int]:
    return [field.yard.keeper(f.parent.name) for f in field.yard.home.glob("runs/*/keeper.json")]


def never_two(one: Field, two: Field) -> None:
    """No task is worked on in two runs at once."""
    seen = [working(one, two), working(one, two)]
    twice = [{task for task, count in found.items() if count > 1} for found in seen]
    assert not twice[0] & twice[1], seen


def working(one: Field, two: Field) -> Counter:
    marks = {}
    for field in (one, two):
        for file in field.yard.home.glob("runs/*/keeper.json"):
            with suppress(FileNotFoundError, ValueError):
                marks[json.loads(file.read_text()).get("mark", "")] = file.parent.name
    runs = {marks[mark] for mark in living_marks() if mark in marks}
    return Counter(run.split(".")[0] for run in runs)


def taken_over(one: Field, two: Field, tasks: list[str]) -> None:
    """Every task is done, by the other host, and once."""
    end = time.monotonic() + 60
    while not all(two.yard.state(t) == TaskState.DONE for t in tasks):
        assert time.monotonic() < end, two.story()
        never_two(one, two)
        time.sleep(0.05)
    for task in tasks:
        first, second = two.store.runs(task)
        assert two.yard.endings(task) == ["lost", "succeeded"], two.yard.story(task)
        assert first.host != second.host
        assert second.workspace.branch != first.workspace.branch
        found = Counter(two.yard.commits(second.workspace.branch))
        assert (found["a"], found["b"]) == (1, 1), found
    ended = Counter(e.run for e in two.store.events(limit=10_000) if e.type == "run.ended")
    assert set(ended.values()) == {1}
    assert not [row for row in two.store.slots().values() if row.holders]


def both_work(one: Field, two: Field) -> None:
    """A host that is back takes tasks again, and nothing of before is left anywhere."""
    until(one.supervises, why=one.story)
    two.kill()
    task = one.yard.add("say begun", "write c.txt x", "commit c")
    until(lambda: one.yard.state(task) == TaskState.DONE, timeout=30, why=one.story)
    assert one.yard.endings(task) == ["succeeded"]
    assert "bug in fleet" not in one.yard.said() + two.yard.said()
    until(lambda: not one.yard.strays() and not two.yard.strays(), why="no process is left")


@pytest.mark.real
def test_when_a_machine_dies_another_takes_its_tasks_over(hosts):
    one, two = hosts
    tasks = begin(one, two)
    coders = one.yard.strays()
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
    coders = one.yard.strays()
    until(lambda: len(two.store.runs(tasks[0])) == 2, timeout=30, why=two.story)
    assert not [pid for pid in coders if is_alive(pid)]
    taken_over(one, two, tasks)
    one.start(lease=LEASE)
    both_work(one, two)


@pytest.mark.real
def test_a_host_that_wakes_up_after_its_lease_writes_nothing_about_its_runs(hosts):
    one, two = hosts
    tasks = begin(one, two)
    coders = one.yard.strays()
    os.kill(one.pid, signal.SIGSTOP)  # in a transaction, perhaps: the server ends that in 30 s
    until(lambda: len(two.store.runs(tasks[0])) == 2, timeout=75, why=two.story)
    assert not [pid for pid in coders if is_alive(pid)]
    before = {task: two.store.runs(task)[0] for task in tasks}
    os.kill(one.pid, signal.SIGCONT)
    taken_over(one, two, tasks)
    assert {task: two.store.runs(task)[0] for task in tasks} == before
    assert one.nursery.status(one.pid) is None
    assert not any(machine.marked(mark) for mark in one.yard.marks())
    both_work(one, two)


@pytest.mark.real
def test_a_host_that_was_killed_and_came_back_in_time_keeps_its_runs(hosts):
    one, two = hosts
    tasks = begin(one, two, seconds=3)
    one.kill()
    time.sleep(LEASE / 4)
    one.start(lease=LEASE)
    for task in tasks:
        until(lambda task=task: one.yard.state(task) == TaskState.DONE, timeout=30, why=one.story)
        assert one.yard.endings(task) == ["succeeded"]
        assert len(one.store.runs(task)) == 1
    both_work(one, two)
