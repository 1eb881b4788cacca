from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.hosts.state import HostState, is_over, state_of
from fleet.domain.run import Host

SECOND = 1_000_000
BOX = Host("box-1", 1, "box", "h", "b", 400 * SECOND, lease=300)  # renewed at 100 s


@pytest.mark.parametrize(
    ("seconds", "state"),
    [(100, "awake"), (159, "awake"), (161, "silent"), (399, "silent"), (400, "lost")],
)
def test_a_host_that_does_not_renew_its_lease_is_silent_long_before_its_runs_are_lost(
    seconds, state
):
    assert state_of(BOX, now=seconds * SECOND) == state


def test_a_drained_host_is_awake_and_a_stopped_one_keeps_its_agents():
    assert state_of(replace(BOX, draining=True), now=101 * SECOND) is HostState.DRAINING
    assert state_of(replace(BOX, holder=""), now=399 * SECOND) is HostState.STOPPED
    assert not is_over(replace(BOX, holder=""), now=399 * SECOND)
    assert is_over(replace(BOX, holder=""), now=401 * SECOND)


def test_a_short_lease_is_over_before_anyone_is_called_silent():
    short = replace(BOX, lease=20, lease_until=120 * SECOND)
    assert state_of(short, now=119 * SECOND) is HostState.AWAKE
    assert state_of(short, now=120 * SECOND) is HostState.LOST
