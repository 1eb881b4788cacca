"""Change the lease of a host in a shared store while no supervisor there renews it.

A keeper must end its coder before another host may start the task. So a longer lease is written
to the host's row before the keepers' files, and a shorter one to the keepers' files first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.hosts.lease import AWAY, margin
from fleet.domain.task import SECOND
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.ports import Clock, Launcher, Store


def extend(store: Store, launcher: Launcher, clock: Clock, host: str, lease: int = AWAY) -> None:
    """Let this host's agents work on when its supervisor ends: its row then has no holder.

    `lease` must not be shorter than before. It is a day when a person stops the supervisor; when the
    machine shuts down, its agents end too, and other hosts must not wait that long.
    """
    row = store.hosts().get(host)
    if row is None:
        return
    if not store.live_runs(host=host):
        store.commit([Put(replace(row, holder=""))], [])
        return
    until = clock.since_boot() + lease - margin(lease)
    away = replace(row, holder="", lease=lease, lease_until=store.now() + lease * SECOND)
    store.commit([Put(away)], [])
    runs = store.live_runs(host=host)  # read after the commit: now no other host can end them
    launcher.renew([run.id for run in runs], until=until)


def shorten(store: Store, launcher: Launcher, clock: Clock, host: str, lease: int) -> None:
    """Call this before a supervisor starts, which then renews the lease itself."""
    runs = store.live_runs(host=host)
    if runs:
        until = clock.since_boot() + lease - margin(lease)
        launcher.renew([run.id for run in runs], until=until)
