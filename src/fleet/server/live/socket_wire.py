"""Limits the frames of a WebSocket: few until the client has shown a token, then so many a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto import events

from fleet.server.http.connections import GUEST

if TYPE_CHECKING:
    import asyncio

    from uvicorn._types import ASGISendEvent

    from fleet.server.http.connections import Guest

# Of a socket whose first frame has not been accepted. A large frame is several events.
FIRST_BYTES = 16 << 10
FIRST_EVENTS = 8
FLOOD = "too_many_frames"  # the code in the audit trail
# Of any other: each event costs about 20 µs, and a fleet's client sends a few a minute.
RATE, BURST = 50.0, 200.0  # events a second, and at once
CLOSE_SECONDS = 2.0  # for the answer to our closing frame


class SocketWire(WSProtocol):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.close_timeout = CLOSE_SECONDS
        self._guest: Guest = self.app_state[GUEST]
        self._bytes = -1  # of frames; the first data is the request
        self._left, self._at = float(FIRST_EVENTS), time.monotonic()
        self._strange = True
        self._later: asyncio.TimerHandle | None = None  # reading goes on then

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        super().connection_made(transport)
        self._guest.is_busy, self._guest.show_out = self._is_busy, transport.abort

    def _is_busy(self) -> bool:
        return self._guest.known

    def connection_lost(self, exc: Exception | None) -> None:
        self._guest.leave()
        if self._later is not None:
            self._later.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._bytes < 0:
            self._bytes = 0
        elif not self._guest.known:
            self._bytes += len(data)
            if self._bytes > FIRST_BYTES:
                self._guest.refuse(FLOOD)
                self.transport.abort()
                return
        super().data_received(data)

    def handle_events(self) -> None:
        """Frames over the budget stay unread until the client may send more."""
        if self._later is not None:
            self.transport.pause_reading()
            return
        for event in self.conn.events():
            if self.transport.is_closing():
                return
            self._handle(event)
            if not isinstance(event, events.Request) and not self._may_go_on():
                return

    def _handle(self, event: events.Event) -> None:
        if isinstance(event, events.CloseConnection):
            self.handle_close(event)
        elif self.close_sent:
            return
        elif isinstance(event, events.Request):
            self.handle_connect(event)
        elif isinstance(event, events.TextMessage | events.BytesMessage):
            self.handle_message(event)
        elif isinstance(event, events.Ping):
            self.handle_ping(event)
        elif isinstance(event, events.Pong):
            self.handle_pong(event)

    def _may_go_on(self) -> bool:
        if self._guest.known:
            now = time.monotonic()
            if self._strange:
                self._strange, self._left = False, BURST
            self._left = min(BURST, self._left + (now - self._at) * RATE)
            self._at = now
        self._left -= 1
        if self._left >= 0:
            return True
        if not self._guest.known:
            self._guest.refuse(FLOOD)
            self.transport.abort()
        elif not self.transport.is_closing():
            self.transport.pause_reading()
            self._later = self.loop.call_later(1 / RATE, self._go_on)
        return False

    def _go_on(self) -> None:
        self._later = None
        self.handle_events()
        if self._later is None and not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    async def send(self, message: ASGISendEvent) -> None:
        """Close at once on a client without a token: it would go on sending while we waited for it."""
        closing = message["type"] == "websocket.close" and not self._guest.known
        if closing:
            self.read_paused = False  # nothing more is read
        await super().send(message)
        if closing:
            if self.close_timer is not None:
                self.close_timer.cancel()
                self.close_timer = None
            self.transport.close()
