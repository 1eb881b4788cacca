"""How long a host's runs are its own: until its row has stood still for the length of its lease.

A supervisor on a shared store writes its host's row every few seconds. Another supervisor
there observes that row, and counts its own seconds in which the row did not change. So no two
clocks are compared, and a store that was away, was restarted or failed over to another machine
makes nobody silent: time in which the observer could not read is not counted.

A keeper ends its coder `margin` before any observer can have counted the whole lease.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.run import Host

ALONE = 90  # seconds: the lease of a host whose store no other host uses, or that names none
AWAY = 24 * 3600  # seconds that agents may go on after a person stopped their supervisor
LONGEST_GAP = 5.0  # seconds between two looks that count; in a longer gap we or the store were away


def margin(lease: float) -> float:
    """Seconds before the end of a lease in which its keepers end their coders."""
    return min(15.0, lease / 6)


def beat(lease: float) -> float:
    """Seconds between two renewals: an outage may last for most of the lease."""
    return max(1.0, min(10.0, lease / 30))


class HostSight(NamedTuple):
    """A host's row as it was seen last, and for how many seconds it has not changed."""

    host: Host
    at: float
    still: float = 0.0

    @property
    def is_silent(self) -> bool:
        return self.still >= (self.host.lease or ALONE)


def observe(
    before: Mapping[str, HostSight], rows: Mapping[str, Host], *, at: float
) -> dict[str, HostSight]:
    """What is known of each host after another look at all rows. `at`: by `Clock.since_boot`."""
    return {name: _look(before.get(name), row, at) for name, row in rows.items()}


def _look(before: HostSight | None, row: Host, at: float) -> HostSight:
    if before is None or before.host.version != row.version:
        return HostSight(row, at)
    return HostSight(row, at, before.still + min(at - before.at, LONGEST_GAP))
