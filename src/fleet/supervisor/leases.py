"""The lease of a host in a shared store while no supervisor there renews it.

A keeper must end its coder before another host may start the task. So the host's row is written
first when the lease grows, and the keepers' files first when it shrinks.
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
    """Call it when the supervisor ends and agents go on. The host's row then has no holder.

    `lease` is at least what it was: a day when a person ended it, who wants the agents to go on.
    A machine that is shut down ends them, and others must not wait for it.
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
    """Call it before a supervisor starts, which renews the lease itself."""
    runs = store.live_runs(host=host)
    if runs:
        until = clock.since_boot() + lease - margin(lease)
        launcher.renew([run.id for run in runs], until=until)
