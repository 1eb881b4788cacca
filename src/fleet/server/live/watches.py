"""What pages watch: rows of tasks as they change, transcripts, screens, machines.

A frame has whole rows, and is made once for all clients that may see the same, while there are any.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from fleet.domain.errors import FleetError, Refused
from fleet.operations.catalogue import find
from fleet.operations.insight.conversation import ReadSaid
from fleet.operations.tasks.list import ListTasks
from fleet.operations.tasks.transcript import ReadScreen
from fleet.server.http.codec import encode, outside
from fleet.server.live.feeds import FEEDS, Feeds
from fleet.server.live.frames import framed
from fleet.server.live.stream import MOST_BUFFERED, STREAMS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from fleet.domain.access import Actor
    from fleet.operations.catalogue import Operation
    from fleet.ports import Store
    from fleet.server.live.frames import EventForms
    from fleet.server.live.stream import StreamReader, Streams

    Perform = Callable[[Operation, Actor, Any], Awaitable[Any]]

TOGETHER = 0.25  # seconds in which changes are gathered
PROGRESS = 1.0  # seconds between looks at what changes without an event: tokens, last words
EVERY = 0.5  # seconds between looks at transcripts and screens
MOST_ROWS = 200  # in one frame
MOST_CHANGED = 2000  # tasks that changed at once; after more, every page loads all rows
EACH = 8  # transcripts that one socket can watch, and as many screens
LINES = 500  # of a transcript, in one frame
SECOND = 1_000_000
TROUBLE = (FleetError, OSError, HTTPException)


@dataclass(eq=False)
class Watcher:
    """One socket, with what it was sent last.

    `lines`: the number of the last line, by run; `screens` and `feeds`: the last frame of each.
    """

    reader: StreamReader
    actor: Actor
    rows: bool = False
    missed: bool = False  # it read too slowly and was not sent some rows
    lines: dict[str, int] = field(default_factory=dict)
    screens: dict[str, bytes] = field(default_factory=dict)
    feeds: dict[str, bytes] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        return not (self.rows or self.lines or self.screens or self.feeds)

    @property
    def full(self) -> bool:
        return self.reader.transport.get_write_buffer_size() > MOST_BUFFERED


class Watches:
    """`perform` carries out a read for an actor, if it may."""

    def __init__(self, streams: Streams, perform: Perform) -> None:
        self._streams, self._perform = streams, perform
        self._watchers: dict[StreamReader, Watcher] = {}
        self._changed: dict[str, str | None] = {}  # tasks, and their teams
        self._progress: dict[str, int] = {}  # by live run: when its progress was last noted
        self._going: asyncio.Task[None] | None = None
        self._feeds = Feeds(perform)
        streams.saw = self._saw

    async def watch(
        self, reader: StreamReader, actor: Actor, kind: str, name: str, after: int
    ) -> None:
        """Begin to send a transcript, screen or feed; raise if the actor may not read it."""
        watcher = self._watchers.get(reader) or Watcher(reader, actor)
        if kind in FEEDS:
            self._feeds.begin(watcher, kind)
        elif kind == "said":
            self._room(watcher.lines, name)
            page = await self._do(actor, ReadSaid(name, after=after, limit=1))
            watcher.lines[page.run] = after
        else:
            self._room(watcher.screens, name)
            screen = await self._do(actor, ReadScreen(name, colours=True))
            watcher.screens[screen.run] = b""
        self._begin(watcher)

    async def watch_rows(self, reader: StreamReader, actor: Actor, since: int) -> int:
        """Begin to send rows of tasks that change.

        First those that changed in the last `since` seconds, which a page may have missed between
        loading its rows and connecting; return how many these are.
        """
        watcher = self._watchers.get(reader) or Watcher(reader, actor)
        watcher.rows = True
        self._begin(watcher)
        if not since:
            return 0
        team = reader.view.team
        recent = await self._streams.reads.do(
            STREAMS, lambda store: _changed_in(store, since, team)
        )
        if recent is None:
            watcher.missed = True
            return MOST_CHANGED
        self._changed.update(dict.fromkeys(recent))
        return len(recent)

    def _begin(self, watcher: Watcher) -> None:
        if watcher.reader.ending:  # it left meanwhile
            return
        self._watchers[watcher.reader] = watcher
        if self._going is None or self._going.done():
            self._going = asyncio.create_task(self._go())

    def unwatch(self, reader: StreamReader, kind: str, name: str) -> None:
        watcher = self._watchers.get(reader)
        if watcher is None:
            return
        if kind == "rows":
            watcher.rows = False
        elif kind in FEEDS:
            watcher.feeds.pop(kind, None)
        else:
            (watcher.lines if kind == "said" else watcher.screens).pop(name, None)
        if watcher.idle:
            self.leave(reader)

    def leave(self, reader: StreamReader) -> None:
        self._watchers.pop(reader, None)

    def _room(self, known: dict[str, Any], name: str) -> None:
        if name not in known and len(known) >= EACH:
            what = f"A socket can watch at most {EACH} transcripts and {EACH} screens."
            raise Refused(what, fix="Unwatch one first.")

    def _saw(self, some: Sequence[EventForms]) -> None:
        if self._watchers:
            self._changed.update(
                (heard.event.task, heard.team) for heard in some if heard.event.task
            )

    async def _do(self, actor: Actor, request: Any) -> Any:
        return await self._perform(find(type(request)), actor, request)

    async def _go(self) -> None:
        looked = heard = 0.0
        while self._watchers:
            try:
                await self._tell_rows()
            except TROUBLE:  # which rows were lost is not known
                self._miss(self._watchers.values())
            with suppress(*TROUBLE):  # it is looked at again
                now = time.monotonic()
                if now - heard >= PROGRESS:
                    heard = now
                    await self._note_progress()
                if now - looked >= EVERY:
                    looked = now
                    await self._send_conversation()
                    await self._tell_screens()
            with suppress(*TROUBLE):
                await self._feeds.tell(tuple(self._watchers.values()))
            await asyncio.sleep(TOGETHER)
        self._changed.clear()
        self._progress.clear()

    async def _tell_rows(self) -> None:
        """Send the rows of tasks that changed, and of tasks that wait for these."""
        changed, self._changed = self._changed, {}
        watchers = [watcher for watcher in self._watchers.values() if watcher.rows]
        for watcher in watchers:
            if watcher.missed and not watcher.full:
                watcher.missed = False
                watcher.reader.write(framed(encode({"type": "reload"})))
        if not changed or not watchers:
            return
        if len(changed) > MOST_CHANGED:
            self._miss(watchers)
            return
        teams = await self._streams.reads.do(
            STREAMS, lambda store: _with_dependents(store, changed)
        )
        by_team: dict[str | None, list[Watcher]] = defaultdict(list)
        for watcher in watchers:
            by_team[watcher.reader.view.team].append(watcher)
        for team, mine in by_team.items():
            ids = [task for task, of in teams.items() if team in {None, of}]
            await self._tell_team(ids, mine)

    def _miss(self, watchers: Iterable[Watcher]) -> None:
        for watcher in watchers:
            watcher.missed = True

    async def _tell_team(self, ids: list[str], watchers: list[Watcher]) -> None:
        for start in range(0, len(ids), MOST_ROWS):
            some = tuple(ids[start : start + MOST_ROWS])
            rows = await self._do(watchers[0].actor, ListTasks(tasks=some, limit=MOST_ROWS))
            frame = {"type": "rows", "rows": outside(rows, find(ListTasks).reply)}
            self._hand_out(frame, watchers)

    def _hand_out(self, frame: dict[str, Any], watchers: Iterable[Watcher]) -> None:
        data = framed(encode(frame))
        for watcher in watchers:
            if watcher.full:
                watcher.missed = True
            else:
                watcher.reader.write(data)

    async def _note_progress(self) -> None:
        """Count a task as changed when its run has made progress since the last look."""
        if not any(watcher.rows for watcher in self._watchers.values()):
            return
        heard = await self._streams.reads.do(STREAMS, _heard_at)
        for run, (at, task, team) in heard.items():
            if self._progress.get(run) != at:
                self._changed.setdefault(task, team)
        self._progress = {run: at for run, (at, _, _) in heard.items()}

    async def _send_conversation(self) -> None:
        groups: dict[Any, list[Watcher]] = defaultdict(list)
        for watcher in self._watchers.values():
            view = watcher.reader.view
            for run, line in watcher.lines.items():
                if not watcher.full:
                    groups[run, line, view.team, view.reader].append(watcher)
        for (run, line, *_), watchers in groups.items():
            with suppress(FleetError):
                page = await self._do(watchers[0].actor, ReadSaid(run, after=line, limit=LINES))
                if page.last > line or not page.live:
                    frame = {"type": "said", "page": outside(page, find(ReadSaid).reply)}
                    self._hand_out(frame, watchers)
                for watcher in watchers:
                    self._heard_until(watcher, run, page)

    def _heard_until(self, watcher: Watcher, run: str, page: Any) -> None:
        if run not in watcher.lines:
            return
        watcher.lines[run] = max(page.last, watcher.lines[run])
        if not page.live and page.last >= page.total:
            del watcher.lines[run]

    async def _tell_screens(self) -> None:
        groups: dict[str, list[Watcher]] = defaultdict(list)
        for watcher in self._watchers.values():
            for run in watcher.screens:
                groups[run].append(watcher)
        for run, watchers in groups.items():
            frame = await self._screen(run, watchers[0].actor)
            for watcher in watchers:
                if run in watcher.screens and watcher.screens[run] != frame and not watcher.full:
                    watcher.screens[run] = frame
                    watcher.reader.write(frame)

    async def _screen(self, run: str, actor: Actor) -> bytes:
        try:
            screen = await self._do(actor, ReadScreen(run, colours=True))
        except FleetError as error:
            return framed(encode({"type": "screen", "run": run, "why": error.message}))
        content = outside(screen, find(ReadScreen).reply)
        return framed(encode({"type": "screen", "run": run, "screen": content}))


def _changed_in(store: Store, seconds: int, team: str | None) -> set[str] | None:
    """The team's tasks with an event in that time; None when there are too many events."""
    after = store.number_before(store.now() - seconds * SECOND)
    events = store.events(after=after, limit=MOST_CHANGED)
    if len(events) == MOST_CHANGED:
        return None
    tasks = store.tasks_by_id(sorted({event.task for event in events if event.task}))
    return {task.id for task in tasks.values() if team in {None, task.team}}


def _with_dependents(store: Store, changed: dict[str, str | None]) -> dict[str, str | None]:
    """Add the dependents and parents, whose status may change too; leave out forgotten tasks."""
    names = {*changed}
    for task in changed:
        names.update(store.dependents(task)[:MOST_ROWS])
    tasks = store.tasks_by_id(sorted(names))
    parents = {task.parent for task in tasks.values() if task.parent} - names
    tasks |= store.tasks_by_id(sorted(parents))
    return {task.id: task.team for task in tasks.values()}


def _heard_at(store: Store) -> dict[str, tuple[int, str, str]]:
    runs = store.live_runs()
    tasks = store.tasks_by_id([run.task for run in runs])
    progress = store.progress([run.id for run in runs])
    return {
        run.id: (progress[run.id].at, run.task, tasks[run.task].team)
        for run in runs
        if run.id in progress and run.task in tasks
    }
