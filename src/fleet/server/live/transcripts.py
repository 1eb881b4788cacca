"""What agents say while they work, to sockets that subscribed to their task: from then on."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleet.domain.addressing import without_private
from fleet.domain.errors import FleetError, NotFound
from fleet.server.http.codec import encode
from fleet.server.live.frames import framed
from fleet.server.live.stream import MOST_BUFFERED, STREAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.message import Message
    from fleet.ports import Chunk, Store, Transcripts
    from fleet.server.live.stream import StreamReader
    from fleet.server.read_queue import Reads

EVERY = 0.5  # seconds between two looks
MAX_FRAME_BYTES = 64 << 10  # bytes in one frame, about


@dataclass
class _WatchedTranscript:
    """`offset` None: the end of the transcript at the first look; earlier lines are not sent."""

    run: str = ""
    offset: int | None = None
    readers: set[StreamReader] = field(default_factory=set)


class Outputs:
    """Sends new lines of transcripts to readers; reads files in threads, and only for readers."""

    def __init__(self, reads: Reads, transcripts: Callable[[], Transcripts]) -> None:
        self._reads, self._transcripts = reads, transcripts
        self._watched: dict[str, _WatchedTranscript] = {}
        self._going: asyncio.Task[None] | None = None

    async def listen(self, reader: StreamReader, topic: str) -> None:
        """Send the reader new lines of this task's transcript; do nothing when it is not a task."""
        try:
            run = await self._reads.do(STREAMS, lambda store: store.task(topic).run_id)
        except NotFound:
            return
        if reader.ending:  # it disconnected meanwhile
            return
        self._watched.setdefault(topic, _WatchedTranscript(run)).readers.add(reader)
        if self._going is None or self._going.done():
            self._going = asyncio.create_task(self._go())

    def leave(self, reader: StreamReader, topic: str = "") -> None:
        """Stop sending the reader a task's lines, or those of all tasks."""
        for name in [topic] if topic else list(self._watched):
            watched = self._watched.get(name)
            if watched is not None:
                watched.readers.discard(reader)
                if not watched.readers:
                    del self._watched[name]

    async def _go(self) -> None:
        while self._watched:
            for task, watched in tuple(self._watched.items()):
                with suppress(FleetError, OSError):  # it is looked at again
                    await self._look(task, watched)
            await asyncio.sleep(EVERY)

    async def _look(self, task: str, watched: _WatchedTranscript) -> None:
        run, final = await self._reads.do(STREAMS, lambda store: _run_of(store, task))
        if run != watched.run:
            watched.run, watched.offset = run, 0
        if not run:
            return
        if watched.offset is None:
            watched.offset = await asyncio.to_thread(self._end, run)
        chunk = await asyncio.to_thread(self._read, run, watched.offset, final=final)
        if chunk.lines:
            messages = await self._reads.do(STREAMS, lambda store: store.messages(task))
            self._tell(task, chunk, watched, messages)
            watched.offset = chunk.offset

    def _tell(
        self, task: str, chunk: Chunk, watched: _WatchedTranscript, messages: Sequence[Message]
    ) -> None:
        """Send lines to each reader, without the messages to the agent that it may not read."""
        frames: dict[tuple[str, ...], bytes] = {}
        for reader in watched.readers:
            if reader.transport.get_write_buffer_size() > MOST_BUFFERED:
                continue  # it sees a gap in `from`
            lines = without_private(chunk.lines, messages, reader.view.reader)
            if lines not in frames:
                frame = {
                    "type": "worker_output", "handle": task, "run": watched.run, "lines": lines,
                    "from": watched.offset, "offset": chunk.offset,
                }  # fmt: skip
                frames[lines] = framed(encode(frame))
            reader.write(frames[lines])

    def _read(self, run: str, offset: int, *, final: bool) -> Chunk:
        return self._transcripts().read(run, offset, limit=MAX_FRAME_BYTES, final=final)

    def _end(self, run: str) -> int:
        offset = 0
        while (chunk := self._transcripts().read(run, offset)).lines:
            offset = chunk.offset
        return offset


def _run_of(store: Store, task: str) -> tuple[str, bool]:
    """The task's newest run, and whether that has ended."""
    run = store.task(task).run_id
    return run, bool(run) and not store.run(run).live
