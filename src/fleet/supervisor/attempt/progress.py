"""How far a run is: one row, written at most once a second, and only when it changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.errors import Conflict
from fleet.domain.run import Progress
from fleet.domain.task import SECOND
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.transcript import Conversation
    from fleet.ports import Store

UNREAD = -1


class ProgressWriter:
    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._written = Progress(run_id, UNREAD, 0)

    def report(self, conversation: Conversation, *, last_time: bool = False) -> None:
        at, last = self._store.now(), self._written
        if conversation.lines == last.lines or (0 <= at - last.at < SECOND and not last_time):
            return
        self._write(lambda last: _progress_of(last, conversation, at))

    def set_up(self, command: str) -> None:
        """The set-up of its workspace is at this command now; empty: it is over."""
        if command != self._written.setup:
            self._write(lambda last: replace(last, at=self._store.now(), setup=command))

    def _write(self, change: Callable[[Progress], Progress]) -> None:
        last = self._written
        if last.version == UNREAD:
            rows = self._store.progress([last.id])
            last = replace(last, version=rows[last.id].version if rows else 0)
        try:
            (written,) = self._store.commit([Put(change(last))], [])
        except Conflict:
            self._written = replace(last, version=UNREAD)
            return
        assert isinstance(written, Progress)
        self._written = written


def _progress_of(last: Progress, conversation: Conversation, at: int) -> Progress:
    return replace(
        last,
        at=at,
        lines=conversation.lines,
        usage=conversation.usage,
        peak_context=conversation.peak_context,
        session=conversation.session,
        last=conversation.last[:500],
        setup="",
    )
