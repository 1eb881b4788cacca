"""Whoever waits is woken by a commit of another process, and misses none that came just before."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from fleet.adapters.home.bell import Bell
from fleet.app import open_store
from fleet.domain.errors import Conflict, TooSlow
from fleet.domain.event import Event
from fleet.domain.task import Task, TaskState
from fleet.ports import Put, TaskQuery

if TYPE_CHECKING:
    from pathlib import Path

SOON = 0.8  # a process has to be scheduled; a poll each second would be later
LONG = 20.0
KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.real)]
COMMIT = """
import sys, time
from pathlib import Path
from fleet.adapters.home.bell import Bell
from fleet.app import open_store
from fleet.domain.event import Event
url, bell = sys.argv[1:]
store = open_store(url, Bell(Path(bell)) if bell else None)
print("ready", flush=True)
sys.stdin.readline()
store.commit([], [Event("x", "t-1", "me", 1)])
print(time.time(), flush=True)
"""


@pytest.fixture(params=KINDS)
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'fleet.db'}"
    return request.getfixturevalue("postgres_url")


class Writer:
    """Another process that is ready to commit when it is told to."""

    def __init__(self, url: str, bell: Path | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMIT, url, str(bell or "")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def commit(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def committed_at(self) -> float:
        out, _ = self.process.communicate(timeout=LONG)
        return float(out)


def begun(store) -> None:
    """What was there before has been taken notice of."""
    for _ in range(3):
        store.wait(0)


def took(store, timeout: float) -> float:
    start = time.monotonic()
    store.wait(timeout)
    return time.monotonic() - start


def test_a_commit_of_another_process_ends_the_wait(url):
    store = open_store(url)
    writer = Writer(url)
    begun(store)
    writer.commit()
    store.wait(LONG)
    woken = time.time()
    assert woken - writer.committed_at() < SOON
    assert [e.type for e in store.events()] == ["x"]


def test_a_commit_just_before_the_wait_is_not_missed(url):
    store, other = open_store(url), open_store(url)
    begun(store)
    for number in range(20):
        other.commit([], [Event("x", "t-1", "me", number)])
        assert took(store, LONG) < LONG / 2, f"commit {number} was missed"


def test_a_commit_before_the_very_first_wait_is_not_missed(url):
    store, other = open_store(url), open_store(url)
    assert store.events() == []
    other.commit([], [Event("x", "t-1", "me", 1)])
    assert took(store, LONG) < LONG / 2


def test_a_wait_without_a_commit_lasts_as_long_as_it_was_asked_to(url):
    store = open_store(url)
    begun(store)
    assert 0.25 < took(store, 0.3) < 5


def test_what_was_refused_wakes_nobody(url):
    store, other = open_store(url), open_store(url)
    task = Task("t-1", 7, TaskState.OPEN, "x", "", "/p", "me", 1)
    begun(store)
    with pytest.raises(Conflict):
        other.commit([Put(task)], [Event("x", "t-1", "me", 1)])
    assert took(store, 0.3) > 0.25


def test_the_bell_wakes_at_once(url, tmp_path):
    bell = Bell(tmp_path / "bell")
    bell.listen()
    store = open_store(url, bell)
    writer = Writer(url, tmp_path / "bell")
    begun(store)
    writer.commit()
    store.wait(LONG)
    assert time.time() - writer.committed_at() < SOON


def test_a_writer_that_knows_no_bell_is_noticed_all_the_same(url, tmp_path):
    bell = Bell(tmp_path / "bell")
    bell.listen()
    store = open_store(url, bell)
    writer = Writer(url)
    begun(store)
    writer.commit()
    assert took(store, LONG) < LONG / 2
    writer.committed_at()


def test_a_keeper_that_rings_ends_the_wait_with_nothing_written(url, tmp_path):
    bell = Bell(tmp_path / "bell")
    bell.listen()
    store = open_store(url, bell)
    begun(store)
    Bell(tmp_path / "bell").ring()
    assert took(store, LONG) < LONG / 2


def test_what_is_read_after_its_time_is_refused_and_nothing_else(store):
    store.limit(30)
    assert store.tasks(TaskQuery()) == []
    store.limit(1e-9)
    with pytest.raises(TooSlow):
        store.tasks(TaskQuery())
    store.limit(0)
    assert store.tasks(TaskQuery()) == []
