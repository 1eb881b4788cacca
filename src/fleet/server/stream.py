"""Events as they happen: state is read first, then every event after it, none missed or twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from fleet.domain.access import Role
from fleet.server.speech import encode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from fleet.domain.access import Actor
    from fleet.domain.event import Event
    from fleet.ports import Store

BATCH = 500
PATIENCE = 15.0  # seconds between signs of life
BEHIND = 10_000  # events that a reader may be behind before it is let go


class Streams:
    """`store` is read in the loop; `team_of` says whose task an event is about."""

    def __init__(self, store: Store, team_of: Callable[[str], str]) -> None:
        self._store = store
        self._team_of = team_of
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fresh: set[asyncio.Event] = set()
        self._over = False

    def __len__(self) -> int:
        return len(self._fresh)

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def end(self) -> None:
        self._over = True
        self._wake()

    def tell(self) -> None:
        """From any thread: something was written."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for fresh in self._fresh:
            fresh.set()

    def response(self, actor: Actor, after: int | None) -> StreamingResponse:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(
            self._lines(actor, after), media_type="text/event-stream", headers=headers
        )

    async def _lines(self, actor: Actor, after: int | None) -> AsyncIterator[bytes]:
        fresh = asyncio.Event()
        self._fresh.add(fresh)
        try:
            at = self._newest() if after is None else after
            yield b"retry: 1000\nid: %d\nevent: ready\ndata: {}\n\n" % at
            while not self._over:
                fresh.clear()
                found = self._store.events(after=at, limit=BATCH)
                if found:
                    at = found[-1].number
                    said = b"".join(_sse(e) for e in found if self._may_see(actor, e))
                    if said:
                        yield said
                    continue
                try:
                    await asyncio.wait_for(fresh.wait(), PATIENCE)
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self._fresh.discard(fresh)

    def _newest(self) -> int:
        last = self._store.events(limit=1, newest=True)
        return last[-1].number if last else 0

    def _may_see(self, actor: Actor, event: Event) -> bool:
        if actor.role is Role.COORDINATOR:
            return True
        team = self._team_of(event.task) if event.task else event.data.get("team", actor.team)
        return team == actor.team


def _sse(event: Event) -> bytes:
    said: dict[str, Any] = {
        "number": event.number, "type": event.type, "task": event.task, "run": event.run,
        "actor": event.actor, "at": event.at, "data": dict(event.data),
    }  # fmt: skip
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.number, event.type.encode(), encode(said))
