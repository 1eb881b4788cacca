"""Events as they happen: state is read first, then every event after it, none missed or twice.

A reader that has caught up is sent an event at once, and none waits for another. What it has not
read yet is buffered up to a limit. Past that it is sent the rest from the store, as it reads; one
that stops reading is disconnected, and can reconnect with the number of the last event it saw.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, FleetError, Forbidden, Refused
from fleet.server.live.frames import EventForms, Wrap, team_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator

    from fleet.domain.access import Actor
    from fleet.domain.event import Event
    from fleet.ports import Store
    from fleet.server.live.frames import FrameOf, View
    from fleet.server.read_queue import Reads

BATCH = 500
TICK = 1.0  # seconds between checks of the readers' tokens
QUIET = 15.0  # seconds without an event after which a heartbeat is sent
MOST_BUFFERED = 256 << 10  # bytes that wait for a reader before it is too slow
GRACE = 3.0  # seconds to send the reason for closing
PACE = 10.0  # seconds in which a reader must have taken most of what is held for it
STREAMS = "streams"  # the name under which reads for all streams are queued
RECENT = 2000  # events that are kept encoded while a client reads
EACH = 100  # streams of one member


class ReaderEnd(NamedTuple):
    """Why a reader is disconnected. `after`: the number of the last event that it was sent."""

    code: str
    said: str
    after: int = 0


SLOW = ReaderEnd("slow_reader", "You read too slowly. Reconnect with `after`; no event is lost.")
STOPPING = ReaderEnd(
    "stopping", "The server is shutting down. Reconnect with `after`; no event is lost."
)


@dataclass(eq=False, slots=True)
class StreamReader:
    """A stream's client. `number`: of the last event it was sent. `finish` sends why it ends."""

    transport: asyncio.Transport
    view: View
    token: str
    number: int
    finish: Callable[[ReaderEnd], Awaitable[None]]
    alive: bytes = b""  # the heartbeat, where the protocol has none of its own
    spoke: float = field(default_factory=time.monotonic)
    ending: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # held while old events are sent to it

    def write(self, frame: bytes) -> None:
        if frame and not self.transport.is_closing():
            self.transport.write(frame)
            self.spoke = time.monotonic()


class Streams:
    """All live readers. `team_of` returns the team of a task. A remote store is read in threads.

    `frame_of` returns the first fields of an event's WebSocket frame. A member, with however many
    tokens, has at most `each` streams: none is closed to make room for others.
    """

    def __init__(self, reads: Reads, team_of: Callable[[str], str], frame_of: FrameOf) -> None:
        self.reads = reads
        self._looking = asyncio.Lock()  # held while a remote store is read
        self._is_due = False
        self._team_of, self._frame_of = team_of, frame_of
        self._check: Callable[[str], object] = lambda _: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._number = 0  # of the last event that all in `_views` were sent
        self._views: dict[View, set[StreamReader]] = defaultdict(set)
        self._all: set[StreamReader] = set()
        self.each = EACH
        self._open: Counter[tuple[str, str]] = Counter()  # of each member
        self._recent: dict[int, EventForms] = {}
        self._tasks: set[asyncio.Future[None]] = set()
        self._ticking: asyncio.TimerHandle | None = None
        self._woken = self._over = False
        self.pace = PACE
        self.saw: Callable[[list[EventForms]], object] = lambda _: None  # called with new events

    def __len__(self) -> int:
        return len(self._all)

    def counts(self) -> dict[str, int]:
        """How many readers there are of each kind."""
        sockets = sum(reader.view.wrap is Wrap.FRAMES for reader in self._all)
        return {"sse": len(self._all) - sockets, "websocket": sockets}

    @property
    def busiest(self) -> int:
        """The largest number of streams that one member has open."""
        return max(self._open.values(), default=0)

    @contextmanager
    def one_of(self, actor: Actor) -> Iterator[None]:
        """Count a stream of this member while it is open. Raise `Refused` over the limit."""
        member = (actor.team, actor.name)
        if self._open[member] >= self.each:
            raise Refused(
                f"{actor.name} has {self.each} streams of events open, which is the limit.",
                fix="Close one first; `server.streams` is the limit.",
                code="too_many_streams",
            )
        self._open[member] += 1
        try:
            yield
        finally:
            self._open[member] -= 1
            if not self._open[member]:
                del self._open[member]

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ticking = loop.call_later(TICK, self._tick)

    def end(self) -> None:
        self._over = True
        if self._ticking is not None:
            self._ticking.cancel()
        for reader in tuple(self._all):
            self.let_go(reader, STOPPING)

    def checked_by(self, check: Callable[[str], object]) -> None:
        """Set the function that raises `Forbidden` for a token that is no longer valid."""
        self._check = check

    def tell(self) -> None:
        """Send new events soon; may be called from any thread after something was written."""
        if not self._woken and self._loop is not None and not self._loop.is_closed():
            self._woken = True
            self._loop.call_soon_threadsafe(self._wake)

    async def start_of(self, after: int | None) -> int:
        """Return the number of the event after which a reader begins.

        Raise `BadInput` for a number that no event has yet, and for one after which events are gone.
        """
        newest, first = await self.reads.do(STREAMS, ends_of)
        if after is not None and after > newest:
            raise BadInput(
                f"There is no event {after}: the newest is {newest}.",
                fix="Start again without a number.",
                code="no_such_event",
            )
        if after is not None and after + 1 < first:
            raise BadInput(
                f"The events after {after} are gone: the oldest kept is {first}.",
                fix="Start again without a number: you get the present state, then what happens.",
                code="events_gone",
            )
        return newest if after is None else after

    def admit(self, reader: StreamReader) -> None:
        """Add a reader, which is disconnected when its token ends; `follow` sends it events."""
        self._all.add(reader)
        if self._over:
            self.let_go(reader, STOPPING)

    async def join(self, reader: StreamReader) -> None:
        """Follow once it has read enough; disconnect the reader when the store fails."""
        async with reader.turn:
            await self.room(reader)
            try:
                await self.follow(reader)
            except FleetError as error:
                self.let_go(reader, ReaderEnd(error.code, error.public or error.message))

    async def follow(self, reader: StreamReader) -> None:
        """Send the events that it has not seen yet; after that it gets new ones as they happen."""
        while not reader.ending and not reader.transport.is_closing():
            await self._look()
            self._send(reader, await self._events(reader.number, self._number))
            if reader.number >= self._number:
                self._views[reader.view].add(reader)
                return
            await self.room(reader)

    async def replay(
        self, reader: StreamReader, after: int, wanted: Callable[[EventForms], bool]
    ) -> None:
        """Send the wanted events after `after`, up to the last event that the reader was sent."""
        while after < reader.number and not reader.ending:
            some = await self._events(after, reader.number)
            if not some:
                return
            after = some[-1].number
            reader.write(b"".join(reader.view.frame(heard) for heard in some if wanted(heard)))
            await self.room(reader)

    def pause(self, reader: StreamReader) -> None:
        """Send the reader nothing until it is to `follow` again."""
        readers = self._views.get(reader.view, set())
        readers.discard(reader)
        if not readers:
            self._views.pop(reader.view, None)

    def refile(self, reader: StreamReader, view: View) -> None:
        hears = reader in self._views.get(reader.view, ())
        self.pause(reader)
        reader.view = view
        if hears:
            self._views[view].add(reader)

    def resume(self, reader: StreamReader) -> None:
        """Let the reader follow again, in a task of its own."""
        self._beside(self.join(reader))

    def leave(self, reader: StreamReader) -> None:
        reader.ending = True
        self.pause(reader)
        self._all.discard(reader)
        if not self._all:
            self._recent.clear()

    def let_go(self, reader: StreamReader, ending: ReaderEnd) -> None:
        if reader.ending:
            return
        self.leave(reader)
        self._beside(_finish(reader, ending._replace(after=reader.number)))

    async def room(self, reader: StreamReader) -> None:
        """Wait until it has read most of what it was sent; disconnect it if that takes too long."""
        await asyncio.sleep(0)
        transport, end = reader.transport, time.monotonic() + self.pace
        while transport.get_write_buffer_size() > MOST_BUFFERED // 4 and not transport.is_closing():
            if reader.ending:
                return
            if time.monotonic() > end:
                self.let_go(reader, SLOW)
            await asyncio.sleep(0.01)

    def _beside(self, act: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(act)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _wake(self) -> None:
        self._woken = False
        if not self._views:  # a new reader looks at the store itself
            return
        if self.reads.near is None:
            if not self._is_due:  # else a look is due already
                self._is_due = True
                self._beside(self._look_far())
            return
        with suppress(FleetError):  # a store that is away now is asked again by the tick
            self._look_near()

    async def _look(self) -> None:
        if self.reads.near is not None:
            self._look_near()
        else:
            async with self._looking:
                await self._take_far()

    def _look_near(self) -> None:
        store = self.reads.store
        if self._views:
            self._take(
                [self._heard(e, store) for e in store.events(after=self._number, limit=BATCH)]
            )
        else:
            self._number = newest_in(store)

    async def _look_far(self) -> None:
        async with self._looking:
            self._is_due = False
            with suppress(FleetError):
                while await self._take_far():
                    pass

    async def _take_far(self) -> bool:
        """Read the next events from a remote store; return whether there may be more."""
        if not self._views:
            self._number = await self.reads.do(STREAMS, newest_in)
            return False
        after = self._number
        some = await self.reads.do(STREAMS, lambda store: self._whole(store, after))
        self._take(some)
        return bool(some)

    def _whole(self, store: Store, after: int) -> list[EventForms]:
        """Read events and encode them in each format; runs in a thread."""
        some = [self._heard(event, store) for event in store.events(after=after, limit=BATCH)]
        for heard in some:
            _ = heard.topics, heard.sse, heard.frame, heard.full_frame
        return some

    def _take(self, some: list[EventForms]) -> None:
        if not some:
            return
        self._number = some[-1].number
        self.saw(some)
        for view, readers in tuple(self._views.items()):
            self._hand_out(view.said(some), tuple(readers))
        if len(some) == BATCH and self._loop is not None:
            self._loop.call_soon(self._wake)

    def _hand_out(self, frame: bytes, readers: Iterable[StreamReader]) -> None:
        number, now = self._number, time.monotonic()
        for reader in readers:
            transport = reader.transport
            if transport.get_write_buffer_size() > MOST_BUFFERED:
                self.pause(reader)
                self.resume(reader)
                continue
            reader.number = number
            if frame and not transport.is_closing():
                transport.write(frame)
                reader.spoke = now

    def _send(self, reader: StreamReader, some: list[EventForms]) -> None:
        if some:
            reader.write(reader.view.said(some))
            reader.number = some[-1].number

    async def _events(self, after: int, until: int) -> list[EventForms]:
        """Return the events between two numbers, at most a batch."""
        if after >= until:
            return []
        if self.reads.near is None:
            some = await self.reads.do(STREAMS, lambda store: self._whole(store, after))
        else:
            store = self.reads.store
            some = [self._heard(event, store) for event in store.events(after=after, limit=BATCH)]
        return [heard for heard in some if heard.number <= until]

    def _heard(self, event: Event, store: Store) -> EventForms:
        forms = self._recent.get(event.number)
        if forms is None:
            if len(self._recent) >= RECENT:
                self._recent.clear()
            forms = EventForms(event, team_in(event, self._team_of), store, self._frame_of)
            self._recent[event.number] = forms
        return forms

    def _tick(self) -> None:
        if self._loop is None or self._over:
            return
        self._ticking = self._loop.call_later(TICK, self._tick)
        if self.reads.near is None:
            self._beside(self._check_far())
        else:
            self._let_go_of(_refused(self._tokens(), self._check))
        now = time.monotonic()
        for reader in tuple(self._all):
            if reader.alive and now - reader.spoke > QUIET:
                reader.write(reader.alive)
        if self._all:
            self._wake()

    def _tokens(self) -> set[str]:
        return {reader.token for reader in self._all}

    async def _check_far(self) -> None:
        tokens = self._tokens()
        with suppress(FleetError):  # a store that is away says nothing about a token
            self._let_go_of(await self.reads.do(STREAMS, lambda _: _refused(tokens, self._check)))

    def _let_go_of(self, refused: dict[str, Forbidden]) -> None:
        for reader in tuple(self._all) if refused else ():
            if (error := refused.get(reader.token)) is not None:
                self.let_go(reader, ReaderEnd(error.code, error.message))


def newest_in(store: Store) -> int:
    """The number of the last event."""
    last = store.events(limit=1, newest=True)
    return last[-1].number if last else 0


def ends_of(store: Store) -> tuple[int, int]:
    """The numbers of the last event, and of the first after which none is gone."""
    return newest_in(store), store.first_event()


def _refused(tokens: set[str], check: Callable[[str], object]) -> dict[str, Forbidden]:
    """Return the tokens that are no longer valid, each with its error."""
    refused = {}
    for token in tokens:
        try:
            check(token)
        except Forbidden as error:
            refused[token] = error
        except FleetError:
            pass  # a store that is away says nothing about a token
    return refused


async def _finish(reader: StreamReader, ending: ReaderEnd) -> None:
    """Send the reason for closing; abort the connection if the client does not read it."""
    transport = reader.transport
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(GRACE):
            await reader.finish(ending)
            while transport.get_write_buffer_size():  # noqa: ASYNC110  # it has no event for that
                await asyncio.sleep(0.02)
    if transport.get_write_buffer_size():
        transport.abort()
