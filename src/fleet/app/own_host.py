"""Give this host an id of its own when its home came from another machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleet.adapters.home.host_identity import HostIdentity
from fleet.domain.hosts.lease import ALONE, beat

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.adapters.home.home import Home
    from fleet.domain.run import Host
    from fleet.ports import Store

LOOK_SECONDS = 0.25  # seconds between looks at a row that another machine may be writing


def settle_host(home: Home, store: Store, *, sleep: Callable[[float], None] = time.sleep) -> str:
    """Renew the host's id if another machine has it; return what to tell the user, or nothing.

    Call it with the home's lock held, on a shared store. After a reboot it watches for a moment
    whether another machine writes this host's row.
    """
    identity, old = HostIdentity(home), home.host_id()
    row = store.hosts().get(old)
    if not identity.is_copied and not _is_another(identity, store, row, sleep):
        return ""
    new = identity.renew()
    return f"This home was copied: another machine has the id {old}. This host is {new} now."


def _is_another(
    identity: HostIdentity, store: Store, row: Host | None, sleep: Callable[[float], None]
) -> bool:
    """Whether another machine writes this host's row."""
    if row is None or not row.holder:
        return False
    if not identity.knows(row.holder):
        return True
    return not identity.is_certain and _moves(store, row, sleep)


def _moves(store: Store, row: Host, sleep: Callable[[float], None]) -> bool:
    for _ in range(int((1.5 * beat(row.lease or ALONE) + 1) / LOOK_SECONDS)):
        sleep(LOOK_SECONDS)
        seen = store.hosts().get(row.id)
        if seen is not None and seen.version != row.version:
            return True
    return False
