"""Requests to one node, all within one deadline."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import MSG_PEEK, SHUT_RDWR, gaierror
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from fleet.domain.data import NamedTuple
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from http.client import HTTPMessage, HTTPResponse

CONNECT = 2.0  # seconds
MAX_ANSWER_BYTES = 16 << 20  # bytes of one answer: a list of all hosted models is about one million
ELSEWHERE, BAD = 300, 400


class NoAnswer(Unavailable):
    """The node cannot be reached, or does not answer in time."""


class OtherAnswer(Unavailable):
    """The address answers, but not with what Fleet asked for."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NodeAnswer(NamedTuple):
    status: int
    headers: HTTPMessage
    data: bytes


class Asking:
    """One deadline for all requests: it also cuts off a node that answers byte by byte."""

    connect_seconds = CONNECT

    def __init__(self, endpoint: str, headers: Mapping[str, str], *, within: float) -> None:
        self._parts = urlsplit(endpoint)
        self._headers = headers
        self._within = within
        self._until = time.monotonic() + within
        self._lock = threading.Lock()
        self._connection: HTTPConnection | None = None
        self._cut = False
        self._timer = threading.Timer(within, self._end)
        self._timer.daemon = True
        self.latency = 0.0  # of the first answer

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    @property
    def left(self) -> float:
        return self._until - time.monotonic()

    def json(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON reply to a GET or, with a body, to a POST."""
        status, headers, data = self._ask(path, body)
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if status >= BAD:
            raise OtherAnswer(refused_words(status, value), status)
        if status >= ELSEWHERE:
            raise OtherAnswer(f"it redirects to another address (status {status})", status)
        if value is None:
            page = "html" in headers.get_content_type() or data.lstrip()[:1] == b"<"
            kind_of_answer = (
                "a web page, so it is not a model server" if page else "text that is not JSON"
            )
            raise OtherAnswer(f"it answers with {kind_of_answer}", status)
        return value

    def text(self, path: str) -> str:
        status, _, data = self._ask(path, None)
        if status >= ELSEWHERE:
            raise OtherAnswer(f"it answers with status {status}", status)
        return data.decode("utf-8", "replace")

    def _ask(self, path: str, body: Mapping[str, Any] | None) -> NodeAnswer:
        method = "GET" if body is None else "POST"
        return self.exchange(method, self._parts.path.rstrip("/") + path, body)

    def exchange(self, method: str, target: str, body: Any = None) -> NodeAnswer:
        """Return the reply, whatever its status. `target`: that of the request line."""
        begun = time.monotonic()
        connection = self._connect()
        stage = "no answer"
        try:
            data = None if body is None else json.dumps(body).encode()
            full = {**self._headers, "Accept": "application/json"}
            full |= {} if data is None else {"Content-Type": "application/json"}
            connection.request(method, target, data, full)
            if self._parts.scheme == "https" or connection.sock.recv(1, MSG_PEEK):
                stage = "no whole answer"  # the first byte came: it is slow, not silent
            self.latency = self.latency or time.monotonic() - begun
            response = connection.getresponse()
            data = _read(response)
            if self._cut:  # a reply without a length ends where we cut it
                raise NoAnswer(f"{stage} within {self._within:g} s")
            return NodeAnswer(response.status, response.headers, data)
        except (OSError, HTTPException, ValueError) as error:
            if self._cut or isinstance(error, TimeoutError):
                raise NoAnswer(f"{stage} within {self._within:g} s") from None
            raise NoAnswer(error_words(error)) from None
        finally:
            connection.close()

    def _connect(self) -> HTTPConnection:
        seconds = min(self.connect_seconds, self.left)
        if seconds <= 0:
            raise NoAnswer(f"no answer within {self._within:g} s")
        host = self._parts.hostname or ""
        connection = self._connection_to(host, seconds)
        with self._lock:
            self._connection = connection
        try:
            connection.connect()
        except TimeoutError:
            connection.close()
            raise NoAnswer(f"no connection within {seconds:.1g} s") from None
        except gaierror:
            raise NoAnswer(f"there is no host named {host}") from None
        except (OSError, ValueError) as error:
            connection.close()
            late = (
                f"no connection within {seconds:.1g} s"  # it was too slow during the TLS handshake
            )
            raise NoAnswer(late if self._cut else error_words(error)) from None
        connection.sock.settimeout(max(0.01, self.left))
        return connection

    def _connection_to(self, host: str, seconds: float) -> HTTPConnection:
        connection_class = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        return connection_class(host, self._parts.port, timeout=seconds)

    def _end(self) -> None:
        with self._lock:
            self._cut = True
            sock = self._connection.sock if self._connection is not None else None
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(SHUT_RDWR)


def _read(response: HTTPResponse) -> bytes:
    data = response.read(MAX_ANSWER_BYTES + 1)
    if len(data) > MAX_ANSWER_BYTES:
        raise OtherAnswer(f"its answer is larger than {MAX_ANSWER_BYTES >> 20} MB", response.status)
    return data


def error_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return f"it broke off: {error}" if str(error) else "it broke off"


def refused_words(status: int, answer: Any) -> str:
    error = answer.get("error", "") if isinstance(answer, dict) else ""
    if isinstance(error, dict):
        error = error.get("message", "")
    if status in {401, 403}:
        return f"it refuses the key, or wants one (status {status})"
    words = " ".join(str(error).split())[:200]
    return f"it answers with status {status}" + (f": {words}" if words else "")
