from __future__ import annotations

import asyncio
import threading
import time

import pytest

from fleet.domain.errors import StoreAway, Unavailable
from fleet.domain.hosts.lease import ALONE
from fleet.domain.run import Host
from fleet.domain.task import SECOND
from fleet.ports import Put
from fleet.server import ready
from fleet.server.ready import Readiness
from fleet.testing.memory_store import MemoryStore


@pytest.fixture
def store():
    return MemoryStore()


LEASE = ALONE * SECOND


def asked(readiness: Readiness) -> dict[str, str]:
    return asyncio.run(readiness.problems())


def a_host(store, *, left: int, holder: str = "x") -> None:
    row = Host("h", 0, "box", holder, "boot", store.now() + left)
    store.commit([Put(row)], [])


@pytest.mark.parametrize(
    ("left", "holder", "ready"),
    [(LEASE, "x", True), (LEASE // 2, "x", True), (1, "x", False), (LEASE, "", False)],
)
def test_a_supervisor_that_does_not_renew_its_lease_does_not_beat(
    tmp_path, store, left, holder, ready
):
    a_host(store, left=left, holder=holder)
    readiness = Readiness(lambda: store, tmp_path, "h")
    assert asked(readiness) == {}
    readiness = Readiness(lambda: store, tmp_path, "h")
    readiness.supervised = True
    assert (not asked(readiness)) is ready


def test_without_its_host_in_the_store_it_does_not_beat_yet(tmp_path, store):
    readiness = Readiness(lambda: store, tmp_path, "h")
    readiness.supervised = True
    assert list(asked(readiness)) == ["supervisor"]


def test_a_store_that_is_away_is_named_without_its_address(tmp_path):
    def away():
        raise Unavailable("The store at postgresql://me@db.internal cannot be reached.")

    problems = asked(Readiness(away, tmp_path, "h"))
    assert problems == {"store": "The store cannot be used (unavailable)."}


def test_a_store_that_stalls_is_given_up_after_the_deadline(tmp_path, store, monkeypatch):
    monkeypatch.setattr(ready, "STORE_SECONDS", 0.05)
    stalled = threading.Event()

    def stalls():
        stalled.wait()
        return store

    readiness = Readiness(stalls, tmp_path, "h")

    async def twice():
        first = await readiness.problems()
        return first, await readiness.problems()

    try:
        first, second = asyncio.run(twice())
    finally:
        stalled.set()
    assert "did not answer" in first["store"]
    assert second == first


def test_health_knows_what_was_seen_last(tmp_path):
    readiness = Readiness(MemoryStore, tmp_path, "h")
    now = time.monotonic()
    assert readiness.known(now, "") == {}
    readiness.failed(StoreAway("x", code="disk_full"))
    assert readiness.known(now, "") == {"store": "The disk of the store is full."}
    readiness.worked()
    assert readiness.known(now, "") == {}
    assert "has not answered" in readiness.known(now - 60, "")["store"]


def test_what_else_is_unavailable_says_nothing_about_the_store(tmp_path):
    readiness = Readiness(MemoryStore, tmp_path, "h")
    readiness.failed(Unavailable("t-1.1 has no terminal."))
    assert readiness.known(time.monotonic(), "") == {}
