"""What no event tells, looked at once for all who watch: the machines, what the relay answers, landing."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError
from fleet.operations.catalogue import find
from fleet.operations.compute.gateway import ShowGateway
from fleet.operations.compute.hosts import ListHosts, ListLimits
from fleet.operations.compute.nodes import ListNodes
from fleet.operations.compute.traces import ListTraces
from fleet.operations.landing.landing import ListLandings
from fleet.operations.landing.trains import ListTrains
from fleet.server.http.codec import encode, outside
from fleet.server.http.problem import problem_of
from fleet.server.live.frames import framed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.domain.access import Actor
    from fleet.server.live.watches import Perform, Watcher

TRACES = "traces"
OVERLAP = 5_000_000  # microseconds before the first look, in which a list may have been read
NOTHING = b""


class Feed(NamedTuple):
    """What a page can watch. `parts`: a frame's fields, each with the request that reads it.

    `every`: seconds between two reads.
    """

    every: float
    parts: Mapping[str, Any]


FEEDS = {
    "nodes": Feed(2.0, {"nodes": ListNodes(), "hosts": ListHosts(), "limits": ListLimits(), "gateway": ShowGateway()}),
    "land": Feed(1.0, {"trains": ListTrains(), "landings": ListLandings(limit=200)}),
    TRACES: Feed(0.5, {}),
}  # fmt: skip


class Feeds:
    """Sends feeds to watchers: the same bytes to all of one role and team, and only changes."""

    def __init__(self, perform: Perform) -> None:
        self._perform = perform
        self._due: dict[str, float] = {}
        self._until: dict[Any, int] = {}  # by group: when the last trace that it was sent had ended

    def begin(self, watcher: Watcher, kind: str) -> None:
        """Let the watcher have this feed; the next round sends it all of it, changed or not."""
        watcher.feeds[kind] = NOTHING
        self._due[kind] = 0.0

    async def tell(self, watchers: Iterable[Watcher]) -> None:
        now = time.monotonic()
        groups: dict[Any, list[Watcher]] = defaultdict(list)
        for watcher in watchers:
            for kind in watcher.feeds:
                if self._due.get(kind, 0.0) <= now and not watcher.full:
                    groups[kind, watcher.actor.role, watcher.actor.team].append(watcher)
        for kind in {kind for kind, *_ in groups}:
            self._due[kind] = now + FEEDS[kind].every
        for group, mine in groups.items():
            if group[0] == TRACES:
                await self._tell_traces(group, mine)
            else:
                self._hand_out(group[0], await self._frame(group[0], mine[0].actor), mine)

    async def _frame(self, kind: str, actor: Actor) -> bytes:
        frame: dict[str, Any] = {"type": kind}
        try:
            for name, request in FEEDS[kind].parts.items():
                frame[name] = await self._read(actor, request)
        except FleetError as error:
            frame["problem"] = problem_of(error)
        return framed(encode(frame))

    async def _tell_traces(self, group: Any, watchers: list[Watcher]) -> None:
        """Send the requests that ended since the last look.

        A page lists earlier ones itself when it begins to watch, so it may get some twice.
        """
        after = self._until.get(group) or time.time_ns() // 1000 - OVERLAP
        request = ListTraces(after=after)
        rows = await self._perform(find(ListTraces), watchers[0].actor, request)
        self._until[group] = rows[-1].ended_at if rows else after
        if rows:
            frame = {"type": TRACES, "rows": outside(rows, find(ListTraces).reply)}
            self._hand_out(TRACES, framed(encode(frame)), watchers)

    def _hand_out(self, kind: str, frame: bytes, watchers: list[Watcher]) -> None:
        for watcher in watchers:
            if watcher.feeds.get(kind, frame) != frame:
                watcher.feeds[kind] = frame
                watcher.reader.write(frame)

    async def _read(self, actor: Actor, request: Any) -> Any:
        operation = find(type(request))
        return outside(await self._perform(operation, actor, request), operation.reply)
