"""On a shared store agents go on for a day after their supervisor was stopped, and nobody starts
their tasks elsewhere meanwhile."""

from __future__ import annotations

import pytest

from fleet.domain.hosts.lease import AWAY
from fleet.domain.run import Choice, Host, Run, RunState
from fleet.domain.task import SECOND
from fleet.ports import Put
from fleet.supervisor.leases import extend, shorten
from fleet.testing.clock import FakeClock
from fleet.testing.fakes import FakeMachine
from fleet.testing.memory_store import MemoryStore

LEASE = 300


@pytest.fixture
def world():
    clock = FakeClock()
    store, machine = MemoryStore(clock), FakeMachine(clock, lambda _run, _process: None)
    row = Host("box", 0, "box", "holder", "", store.now() + LEASE * SECOND, lease=LEASE)
    run = Run("t-1.1", 0, "t-1", RunState.RUNNING, Choice("a", "a"), "box", "holder", 1)
    store.commit([Put(row), Put(run)], [])
    return store, machine, clock


def test_the_keepers_lease_ends_before_the_hosts(world):
    store, machine, clock = world
    extend(store, machine, clock, "box")
    row = store.hosts()["box"]
    assert (row.holder, row.lease_until) == ("", store.now() + AWAY * SECOND)
    left = (row.lease_until - store.now()) / SECOND
    assert machine.leases["t-1.1"] == pytest.approx(left - 15)


def test_the_keepers_lease_is_short_again_before_the_hosts_is(world):
    store, machine, clock = world
    extend(store, machine, clock, "box")
    shorten(store, machine, clock, "box", LEASE)
    assert machine.leases["t-1.1"] == pytest.approx(LEASE - 15)
    assert store.hosts()["box"].lease_until == store.now() + AWAY * SECOND


def test_a_host_without_agents_lets_its_lease_run_out(world):
    store, machine, clock = world
    row = Host("other", 0, "other", "h", "", 5)
    store.commit([Put(row)], [])
    extend(store, machine, clock, "other")
    extend(store, machine, clock, "never-seen")
    assert store.hosts()["other"].lease_until == 5
    assert machine.leases == {}
