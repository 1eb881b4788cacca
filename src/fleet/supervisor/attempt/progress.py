"""How far a run is: one row, written at most once a second, and only when there is news."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.errors import Conflict
from fleet.domain.run import Progress
from fleet.domain.task import SECOND
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.domain.transcript import Conversation
    from fleet.ports import Store

UNREAD = -1


class Reporting:
    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._written = Progress(run_id, UNREAD, 0)

    def report(self, heard: Conversation, *, last_time: bool = False) -> None:
        now, last = self._store.now(), self._written
        if heard.lines == last.lines or (0 <= now - last.at < SECOND and not last_time):
            return
        if last.version == UNREAD:
            held = self._store.progress([last.id])
            last = replace(last, version=held[last.id].version if held else 0)
        try:
            (written,) = self._store.commit([Put(_come_to(last, heard, now))], [])
        except Conflict:
            self._written = replace(last, version=UNREAD)
            return
        assert isinstance(written, Progress)
        self._written = written


def _come_to(last: Progress, heard: Conversation, now: int) -> Progress:
    return replace(
        last,
        at=now,
        lines=heard.lines,
        usage=heard.usage,
        peak_context=heard.peak_context,
        session=heard.session,
        last=heard.last[:500],
    )
