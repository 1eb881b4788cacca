"""The supervisor's loop around `step`: until told to stop, or until there is nothing to do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.event import Event
    from fleet.ports import Store
    from fleet.supervisor.loop import Supervisor

BUSY, IDLE = 0.1, 1.0  # seconds between looks at transcripts; whoever commits wakes us at once


def run(
    supervisor: Supervisor,
    store: Store,
    *,
    once: bool,
    stopping: Callable[[], bool],
    tell: Callable[[Event], None],
    warn: Callable[[str], None],
) -> None:
    """A store that cannot be reached now may be later: agents go on meanwhile, and so do we."""
    seen = _last_number(store)
    supervisor.start()
    complained = ""
    while not stopping():
        try:
            moved = supervisor.step()
            for event in store.events(after=seen):
                seen = event.number
                tell(event)
            complained = _complain(supervisor.trouble, complained, warn)
            if once and supervisor.idle:
                return
            if not moved:
                store.wait(BUSY if supervisor.attempts else IDLE)
        except Unavailable as error:
            warn(f"{error.message} Trying again.")
            time.sleep(IDLE)


def _last_number(store: Store) -> int:
    newest = store.events(limit=1, newest=True)
    return newest[0].number if newest else 0


def _complain(trouble: dict[str, str], before: str, warn: Callable[[str], None]) -> str:
    """Say it when it is new, not a thousand times."""
    now = "; ".join(f"{run}: {why}" for run, why in sorted(trouble.items()))
    if now and now != before:
        warn(now)
    return now
