"""A shared store: what a host's lease is while nobody there renews it.

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
    """When a supervisor leaves and agents go on. The row then has no holder."""
    row = store.hosts().get(host)
    if row is None or not store.live_runs(host=host):
        return
    until = clock.since_boot() + (AWAY - MARGIN) / SECOND
    store.commit([Put(replace(row, holder="", lease_until=store.now() + AWAY))], [])
    going = store.live_runs(host=host)  # read now: nobody else can end them any more
    launcher.renew([run.id for run in going], until=until)


def shorten(store: Store, launcher: Launcher, clock: Clock, host: str) -> None:
    """Before a supervisor starts that renews the lease itself."""
    going = store.live_runs(host=host)
    if going:
        until = clock.since_boot() + (LEASE - MARGIN) / SECOND
        launcher.renew([run.id for run in going], until=until)
