"""One HTTP connection, below the requests on it: deadlines, limits, and refusals that say why."""

from __future__ import annotations

import socket
from http import HTTPStatus
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fleet.server.http.codec import encode
from fleet.server.http.connections import GUEST, Door, Guest
from fleet.server.http.guard import REQUEST_SECONDS
from fleet.server.http.problem import TYPE, problem

if TYPE_CHECKING:
    import asyncio
    from typing import Any


TRANSPORT = "fleet.transport"  # in a scope's state: what live events are written to
CROWDED = "The server has too many connections."
ONCE = (b"origin", b"authorization", b"content-type", b"idempotency-key")  # two would contradict
KNOWN_SECONDS = 75  # that an idle connection is kept which has shown a token
IN_KERNEL = 128 << 10  # bytes of the kernel's send buffer, which otherwise grows to megabytes
HEAD = 1 << 16  # bytes of a request line and its headers


class HttpWire(HttpToolsProtocol):
    """A connection that refuses a client that is too slow or does not speak HTTP.

    A request's headers have a deadline, then its body has one; a request that arrives in one
    piece, as nearly all do, starts no timer.
    """

    patience = REQUEST_SECONDS
    door = Door()
    _guest: Guest
    _deadline: asyncio.TimerHandle | None = None
    _asking = False  # a request has begun to arrive and is not complete
    _spoiled = ""  # why nothing more is read from this connection
    _wrong: tuple[int, str, str] | None = None  # status, code, detail: what is wrong in the headers
    _chunk = 0  # bytes that came last
    _first = 0  # bytes that came with the beginning of this request
    _head = 0  # bytes of a request whose headers are not whole; -1: they are
    _answered: Any = None  # the request that is being answered
    _unread = 0  # bytes of answers that the client had not taken when we looked last
    _taking: asyncio.TimerHandle | None = None  # when to check again whether the client reads

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, IN_KERNEL)
        address = self.client[0] if self.client else ""
        self._guest = Guest(self.door, address, self._is_busy, self._show_out)
        self.app_state = {**self.app_state, TRANSPORT: transport, GUEST: self._guest}
        if self.door.enter(self._guest):
            self._wait()
        else:
            self._spoiled = CROWDED
            self._refuse(503, "too_many_connections", CROWDED)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        self.resume_writing()
        self._guest.leave()
        self.pipeline.clear()
        if self._answered is not None:  # `cycle` is the last that came
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        if self._spoiled:
            return
        self._chunk = len(data)
        if self._head >= 0:
            self._head += len(data)
        super().data_received(data)
        if self._asking and self._deadline is None:
            self._wait()
        if self._head > HEAD and not self.transport.is_closing():
            self._refuse(431, "too_large", f"The headers are over {HEAD} bytes.")

    def on_message_begin(self) -> None:
        self._asking, self._head, self._first = True, 0, self._chunk
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._wait_no_more()
        longest, self._head = self._first + self._head + self._chunk, -1
        if (
            longest > HEAD
            and len(self.url) + sum(len(n) + len(v) + 4 for n, v in self.headers) > HEAD
        ):
            self._wrong = (431, "too_large", f"The headers are over {HEAD} bytes.")
            raise ValueError  # ends the parser, which calls `send_400_response`
        names = [name for name, _ in self.headers]
        if names.count(b"host") != 1 or any(names.count(name) > 1 for name in ONCE):
            words = "The request has no Host header, or one of its headers twice."
            self._wrong = (400, "not_http", words)
            raise ValueError  # as above
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._asking = False
        self._wait_no_more()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._guest.known:
            self.timeout_keep_alive = KNOWN_SECONDS
        super().on_response_complete()
        if self._spoiled and not self._answering():
            self._refuse(*(self._wrong or (400, "not_http", self._spoiled)))

    def handle_websocket_upgrade(self) -> None:
        self._asking = False
        self._wait_no_more()
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid bytes, after the requests that came before them are answered."""
        if self._spoiled:
            return
        self._spoiled = msg
        if not self._answering() or self.cycle.more_body:  # else the nonsense is after its body
            self._give_up(*(self._wrong or (400, "not_http", msg)))

    def pause_writing(self) -> None:
        super().pause_writing()
        if not self._guest.paced:
            self._unread = self.transport.get_write_buffer_size()
            self._taking = self.loop.call_later(self.patience, self._look_if_taken)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _look_if_taken(self) -> None:
        """Abort when the client has read nothing since the last check."""
        self._taking = None
        left = self.transport.get_write_buffer_size()
        if self._guest.paced:
            return
        if left >= self._unread:
            self._guest.refuse("slow_reader")
            self.transport.abort()
            return
        self._unread = left
        self._taking = self.loop.call_later(self.patience, self._look_if_taken)

    def _is_busy(self) -> bool:
        """Whether a whole request is being answered, to a client that reads the answer."""
        if self.flow is not None and self.flow.write_paused and not self._guest.paced:
            return False
        return self._answering() and not self.cycle.more_body

    def _show_out(self) -> None:
        if self.transport.get_write_buffer_size():  # to close would wait until it is taken
            self._guest.refuse("too_many_connections")
            self.transport.abort()
            return
        if self.cycle is not None and not self._asking:  # it was answered, and is idle
            self._guest.refuse("too_many_connections")
            self.transport.close()
        else:
            self._give_up(503, "too_many_connections", CROWDED)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(self.patience, self._too_late)

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            detail = f"No whole request came within {self.patience:g} seconds."
            self._give_up(408, "too_slow", detail)

    def _give_up(self, status: int, code: str, detail: str) -> None:
        """Refuse the request, or close if a response has begun; its handler sees a disconnect."""
        begun = False
        if self.cycle is not None and self._head < 0:
            begun = self.cycle.response_started
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if begun or (self._head >= 0 and self._answering()):
            self.transport.close()
        else:
            self._refuse(status, code, detail)

    def _refuse(self, status: int, code: str, detail: str) -> None:
        self._guest.refuse(code)
        body = encode(problem(status, code, detail))
        later = "retry-after: 1\r\n" if status == 503 else ""
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n{later}\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def wire(patience: float, door: Door) -> type[HttpWire]:
    """`patience`: seconds for the headers of a request, and then for its body."""
    return type("HttpWire", (HttpWire,), {"patience": patience, "door": door})


def websocket(**given: Any) -> asyncio.Protocol:
    """The WebSocket protocol, loaded when a client first asks for one: it costs two megabytes."""
    from fleet.server.live.socket_wire import SocketWire  # noqa: PLC0415

    return SocketWire(**given)
