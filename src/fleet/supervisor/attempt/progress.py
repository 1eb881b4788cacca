"""How far a run is: one row, written every two seconds, if it changed, while the run is still ours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.errors import Conflict
from fleet.domain.run import Progress
from fleet.domain.task import SECOND
from fleet.ports import Put, Same

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.run import Run
    from fleet.domain.transcript import Conversation
    from fleet.ports import Change, Store

UNREAD = -1
WRITE_PERIOD = 2 * SECOND


class ProgressWriter:
    """Nothing is written about a run that has changed since it was read: it may be another host's."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._written = Progress(run_id, UNREAD, 0)

    def report(
        self, run: Run, conversation: Conversation, *, window: int = 0, last_time: bool = False
    ) -> None:
        """`window`: how many tokens its context holds."""
        at, last = self._store.now(), self._written
        if conversation.lines == last.lines or (0 <= at - last.at < WRITE_PERIOD and not last_time):
            return
        self._write(run, lambda last: _progress_of(last, conversation, window, at))

    def set_up(self, run: Run, command: str) -> None:
        """The set-up of its workspace is at this command now; empty: it is over."""
        if command != self._written.setup:
            self._write(run, lambda last: replace(last, at=self._store.now(), setup=command))

    def saved(self, run: Run, commit: str, changes: Sequence[Change]) -> None:
        """Other hosts can have this commit of the run, by these changes."""
        self._write(run, lambda last: replace(last, at=self._store.now(), commit=commit), changes)

    def _write(
        self, run: Run, change: Callable[[Progress], Progress], more: Sequence[Change] = ()
    ) -> None:
        last = self._written
        if last.version == UNREAD:
            rows = self._store.progress([last.id])
            progress = rows.get(last.id)
            last = (
                replace(last, version=progress.version, commit=progress.commit)
                if progress
                else _new(last)
            )
        try:
            written = self._store.commit([Put(change(last)), Same(run), *more], [])[0]
        except Conflict:
            self._written = replace(last, version=UNREAD)
            return
        assert isinstance(written, Progress)
        self._written = written


def _new(progress: Progress) -> Progress:
    return replace(progress, version=0)


def _progress_of(last: Progress, conversation: Conversation, window: int, at: int) -> Progress:
    return replace(
        last,
        at=at,
        lines=conversation.lines,
        usage=conversation.usage,
        peak_context=conversation.peak_context,
        session=conversation.session,
        last=conversation.last[:500],
        setup="",
        window=window,
    )
