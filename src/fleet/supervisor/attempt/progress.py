"""How far a run is: one row, written every two seconds, if it changed, while the run is still ours.

Those of all runs of a host are written together, so that many runs cost the store as much as one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.errors import Conflict
from fleet.domain.run import Progress
from fleet.domain.task import SECOND
from fleet.ports import Put, Same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fleet.domain.run import Run
    from fleet.domain.transcript import Conversation
    from fleet.ports import Change, Store

UNREAD = -1
WRITE_PERIOD = 2 * SECOND
MOST_AT_ONCE = 40  # in one commit


class ProgressWriter:
    """Nothing is written about a run that has changed since it was read: it may be another host's."""

    def __init__(self, store: Store, run_id: str) -> None:
        self.store = store
        self.written = Progress(run_id, UNREAD, 0)
        self.noted: tuple[Run, Conversation, int] | None = None

    def note(self, run: Run, conversation: Conversation, *, window: int = 0) -> None:
        """As `report`, but it is written by `write_together`."""
        changed = conversation.lines != self.written.lines
        self.noted = (run, conversation, window) if changed else None

    def report(
        self, run: Run, conversation: Conversation, *, window: int = 0, last_time: bool = False
    ) -> None:
        """`window`: how many tokens its context holds."""
        at, last = self.store.now(), self.written
        self.noted = None
        if conversation.lines == last.lines or not (last_time or _is_due(last, at)):
            return
        self._write(run, lambda last: _progress_of(last, conversation, window, at))

    def set_up(self, run: Run, command: str) -> None:
        """The set-up of its workspace is at this command now; empty: it is over."""
        if command != self.written.setup:
            self._write(run, lambda last: replace(last, at=self.store.now(), setup=command))

    def saved(self, run: Run, commit: str, changes: Sequence[Change]) -> None:
        """Other hosts can have this commit of the run, by these changes."""
        self._write(run, lambda last: replace(last, at=self.store.now(), commit=commit), changes)

    def _write(
        self, run: Run, change: Callable[[Progress], Progress], more: Sequence[Change] = ()
    ) -> None:
        self.read()
        last = self.written
        try:
            written = self.store.commit([Put(change(last)), Same(run), *more], [])[0]
        except Conflict:
            self.written = replace(last, version=UNREAD)
            return
        assert isinstance(written, Progress)
        self.written = written

    def read(self) -> None:
        """The version that the row has, if another process wrote it last."""
        last = self.written
        if last.version != UNREAD:
            return
        progress = self.store.progress([last.id]).get(last.id)
        self.written = (
            replace(last, version=progress.version, commit=progress.commit)
            if progress
            else replace(last, version=0)
        )


def write_together(writers: Iterable[ProgressWriter]) -> None:
    """Write what they noted, if it is time for one of them. Then it is time for all at once again."""
    noted = [writer for writer in writers if writer.noted]
    if not noted:
        return
    store = noted[0].store
    at = store.now()
    if not any(_is_due(writer.written, at) for writer in noted):
        return
    for start in range(0, len(noted), MOST_AT_ONCE):
        _write_some(store, noted[start : start + MOST_AT_ONCE], at)


def _write_some(store: Store, writers: Sequence[ProgressWriter], at: int) -> None:
    """In one commit; if one of the runs is not ours any more, each by itself."""
    puts, sames = [], []
    for writer in writers:
        assert writer.noted
        run, conversation, window = writer.noted
        writer.read()
        puts.append(Put(_progress_of(writer.written, conversation, window, at)))
        sames.append(Same(run))
    try:
        written = store.commit([*puts, *sames], [])
    except Conflict:
        for writer in writers:
            assert writer.noted
            run, conversation, window = writer.noted
            writer.report(run, conversation, window=window, last_time=True)
        return
    for writer, progress in zip(writers, written, strict=True):
        assert isinstance(progress, Progress)
        writer.written, writer.noted = progress, None


def _is_due(last: Progress, at: int) -> bool:
    return not 0 <= at - last.at < WRITE_PERIOD


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
