"""The lease of a host in a shared store while no supervisor there renews it.

A keeper must end its coder before another host may start the task. So the host's row is written
first when the lease grows, and the keepers' files first when it shrinks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.task import SECOND
from fleet.ports import Put
from fleet.supervisor.supervisor import LEASE, MARGIN

if TYPE_CHECKING:
    from fleet.ports import Clock, Launcher, Store

AWAY = 24 * 3600 * SECOND  # how long agents may go on after `fleet run stop`


def extend(store: Store, launcher: Launcher, clock: Clock, host: str) -> None:
    """Call it when the supervisor ends and agents go on. The host's row then has no holder."""
    row = store.hosts().get(host)
    if row is None or not store.live_runs(host=host):
        return
    until = clock.since_boot() + (AWAY - MARGIN) / SECOND
    store.commit([Put(replace(row, holder="", lease_until=store.now() + AWAY))], [])
    runs = store.live_runs(host=host)  # read after the commit: now no other host can end them
    launcher.renew([run.id for run in runs], until=until)


def shorten(store: Store, launcher: Launcher, clock: Clock, host: str) -> None:
    """Call it before a supervisor starts, which renews the lease itself."""
    runs = store.live_runs(host=host)
    if runs:
        until = clock.since_boot() + (LEASE - MARGIN) / SECOND
        launcher.renew([run.id for run in runs], until=until)
