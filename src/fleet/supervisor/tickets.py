"""Comment on a ticket how its task ended; driven by the log of events alone.

A comment contains a mark, and is written once for each mark, so a crash does not write it twice.
The host of the task's newest run writes it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
from fleet.domain.entry import EntryKind
from fleet.domain.errors import FleetError, NotFound
from fleet.domain.event import Kind
from fleet.domain.task import SECOND
from fleet.ports import EntryQuery
from fleet.supervisor.notices import notifying_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.event import Event
    from fleet.ports import Job, Jobs, Mark, Store

KINDS = (Kind.TASK_SETTLED, Kind.TASK_CLOSED, Kind.TASK_LANDED, Kind.PULL_OPENED)
BATCH = 200
PAUSE, LONGEST_PAUSE = 10 * SECOND, 600 * SECOND  # before the next try; doubles with each try
TRIES = 8  # after which the comment is dropped, with a warning


class TicketComment(NamedTuple):
    """A comment; `number` is that of its event."""

    number: int
    task: str
    url: str
    text: str
    mark: str


def words_for(event: Event) -> tuple[str, str]:
    """The comment for this event and the end of its mark; both empty when there is none.

    It never quotes an agent: a ticket may be public.
    """
    match event.type, str(event.data.get("state", "")):
        case (Kind.TASK_SETTLED, "done") | (Kind.TASK_CLOSED, _):
            return f"{event.task} is done.", "done"
        case Kind.TASK_SETTLED, "review":
            return f"{event.task} is done and waits for a review.", "review"
        case Kind.TASK_SETTLED, "failed":
            return f"{event.task} failed. A person has to look at it.", "failed"
        case Kind.PULL_OPENED, _:
            url = str(event.data.get("url", ""))
            return f"{event.task} has a pull request: {url}", f"pull {url}"
        case Kind.TASK_LANDED, _:
            commit = str(event.data.get("commit", ""))[:12]
            return f"{event.task} has landed ({commit}).", f"landed {commit}"
    return "", ""


class TicketReports:
    """The loop calls `step` in every round; a job beside it asks the forge."""

    def __init__(
        self,
        store: Store,
        *,
        host: str,
        comment: Callable[[str, str, str], None],
        jobs: Jobs,
        mark: Mark,
        warn: Callable[[str], None],
    ) -> None:
        self._store, self._host, self._comment = store, host, comment
        self._jobs, self._mark, self._warn = jobs, mark, warn
        self._last: int | None = None
        self._todo: list[TicketComment] = []
        self._job: Job | None = None
        self._tries, self._not_before = 0, 0

    @property
    def idle(self) -> bool:
        """Whether no comment is left to write, or the forge cannot be reached now."""
        return self._job is None and (not self._todo or self._tries > 0)

    def step(self) -> None:
        if self._job is not None:
            if not self._job.done():
                return
            self._finish(self._job)
        self._read()
        if self._todo and self._store.now() >= self._not_before:
            first = self._todo[0]
            self._job = self._jobs.begin(partial(self._comment, first.url, first.text, first.mark))

    def _read(self) -> None:
        if self._last is None:
            newest = self._store.events(limit=1, newest=True)
            end = newest[0].number if newest else 0
            marked = self._mark.read()
            self._last = end if marked is None or marked > end else marked
            self._write_mark()
        before = self._last
        for event in self._store.events_of_kinds(KINDS, after=self._last, limit=BATCH):
            self._last = event.number
            if report := self._report(event):
                self._todo.append(report)
        if self._last != before:
            self._write_mark()

    def _report(self, event: Event) -> TicketComment | None:
        text, end = words_for(event)
        if not text:
            return None
        entries = self._store.entries(EntryQuery(EntryKind.TICKET, owner=event.task, limit=1))
        if not entries or not self._is_ours(event.task):
            return None
        return TicketComment(event.number, event.task, entries[0].key, text, f"{event.task} {end}")

    def _is_ours(self, task_id: str) -> bool:
        store = self._store
        try:
            run_id = store.task(task_id).run_id
            host = store.run(run_id).host if run_id else ""
        except NotFound:
            return False
        return notifying_host(store.hosts(), host, here=self._host, now=store.now()) == self._host

    def _finish(self, job: Job) -> None:
        self._job, report = None, self._todo[0]
        try:
            job.result()
        except (FleetError, OSError) as error:
            self._tries += 1
            self._not_before = self._store.now() + min(
                LONGEST_PAUSE, PAUSE * 2 ** (self._tries - 1)
            )
            if self._tries < TRIES:
                return
            self._warn(f"Fleet could not write to {report.url} that {report.text} {error}")
        self._tries, self._not_before = 0, 0
        del self._todo[0]
        self._write_mark()

    def _write_mark(self) -> None:
        """Save the number of the event up to which all comments were written."""
        assert self._last is not None
        self._mark.write(self._todo[0].number - 1 if self._todo else self._last)
