"""How a host is, by its row and the store's clock: for people. What is done to runs waits for the lease."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from fleet.domain.hosts.lease import ALONE

if TYPE_CHECKING:
    from fleet.domain.run import Host

QUIET = 60  # seconds without a renewal, of which there is one at least every 45


class HostState(StrEnum):
    AWAKE = "awake"
    DRAINING = "draining"  # awake, and starts nothing new
    SILENT = "silent"  # it should have been heard; its runs are still its own
    LOST = "lost"  # its lease is over: other hosts may take its runs
    STOPPED = "stopped"  # its supervisor was stopped; its agents go on until the lease is over


UP = frozenset({HostState.AWAKE, HostState.DRAINING})


def state_of(host: Host, *, now: int) -> HostState:
    if not host.holder:
        return HostState.STOPPED
    if host.lease_until <= now:
        return HostState.LOST
    quiet = min(QUIET, host.lease or ALONE) * 1_000_000
    if now - host.renewed_at > quiet:
        return HostState.SILENT
    return HostState.DRAINING if host.draining else HostState.AWAKE


def is_over(host: Host, *, now: int) -> bool:
    """Whether nothing it started is at work any more, as far as clocks tell."""
    return state_of(host, now=now) not in UP and host.lease_until <= now
