"""A client of fleet's own server over HTTP, with the standard library alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from fleet.domain.errors import (
    BadConfig,
    BadInput,
    BadStore,
    Conflict,
    FleetError,
    Forbidden,
    Mismatch,
    NotFound,
    Refused,
    Unavailable,
)
from fleet.domain.record_json import changed, outward, plain, reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from http.client import HTTPConnection

ANSWER_SECONDS = 90.0  # an answer may have to wait for a run's grace period
BY_CODE: dict[str, type[FleetError]] = {
    kind.code: kind for kind in (BadConfig, BadStore, Conflict, Forbidden, NotFound)
}
BY_STATUS: dict[int, type[FleetError]] = {
    **{kind.http_status: kind for kind in (Refused, Forbidden, BadInput, NotFound, Unavailable)},
    401: Forbidden,
    413: BadInput,
    421: Refused,
    429: Unavailable,  # HTTP's own
}
MISMATCHES = frozenset({"ambiguous", "bad_input", "no_line", "same_vendor"})  # with 409
PROBLEM = frozenset({"type", "title", "status", "detail", "code", "fix"})  # of every problem


class Remote:
    """`url` is the server's address, `token` identifies the caller.

    Its errors advise to correct `variable`; it is empty where the address was typed.
    """

    def __init__(self, url: str, token: str = "", *, variable: str = "FLEET_URL") -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in {"http", "https"} or not _has_place(url, parts):
            like = f"{variable}=http://127.0.0.1:3847" if variable else "One is http://HOST:3847."
            raise BadInput(f"'{url}' is not the address of a server.", fix=like)
        self._variable = variable
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._parts = parts
        self.token = token
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def call(self, name: str, request: Any, reply: Any, *, key: str = "") -> Any:
        """Call the operation of this name; the result has the type `reply`.

        With a `key` it is carried out once, however often it is sent.
        """
        fields = outward(request, changed(request))  # the server has the same defaults
        answer = self.say("POST", f"/v1/{name.replace('.', '/')}", fields, key=key)
        data = answer["data"]
        return None if data is None else reader(reply, strict=False)(data)

    def say(self, method: str, path: str, body: Any = None, *, key: str = "") -> Any:
        """The server's JSON answer; raise the error that the answer names."""
        text = self.text(method, path, body, key=key)
        try:
            return json.loads(text)
        except ValueError:
            raise self._no_server("its answer is not JSON") from None

    def text(self, method: str, path: str, body: Any = None, *, key: str = "") -> str:
        data = None if body is None else json.dumps(body, default=plain).encode()
        headers = self._headers | ({"Content-Type": "application/json"} if data else {})
        headers |= {"Idempotency-Key": key} if key else {}
        status, text = self._sent(method, self._parts.path.rstrip("/") + path, data, headers)
        if status >= 300:
            raise self._error(status, text)
        return text

    def post(self, path: str, data: bytes, headers: Mapping[str, str]) -> str:
        """Post the body as it stands, for a protocol whose errors are answers too."""
        sent_headers = self._headers | {"Content-Type": "application/json"} | dict(headers)
        status, text = self._sent("POST", self._parts.path.rstrip("/") + path, data, sent_headers)
        if status >= 300 and '"jsonrpc"' not in text:
            raise self._error(status, text)
        return text

    def lines(self, path: str) -> Iterator[str]:
        """The lines of an answer that goes on; it ends when the server or the network ends it."""
        import http.client  # noqa: PLC0415  # few commands speak to a server

        connection = self._connection()
        try:
            connection.request("GET", self._parts.path.rstrip("/") + path, headers=self._headers)
            answer = connection.getresponse()
            if answer.status >= 300:
                raise self._error(answer.status, answer.read().decode("utf-8", "replace"))
            while line := answer.readline():
                yield line.decode("utf-8", "replace").rstrip("\r\n")
        except (OSError, http.client.HTTPException) as error:
            words = (isinstance(error, OSError) and error.strerror) or str(error)
            raise self._no_server(words or type(error).__name__) from error
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        import http.client  # noqa: PLC0415  # few commands speak to a server

        secure = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port, timeout=ANSWER_SECONDS)

    def _sent(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, str]:
        import http.client  # noqa: PLC0415  # few commands speak to a server

        connection = self._connection()
        try:
            connection.request(method, path, data, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException, ValueError) as error:
            words = (isinstance(error, OSError) and error.strerror) or str(error)
            raise self._no_server(words or type(error).__name__) from error
        finally:
            connection.close()

    def _error(self, status: int, text: str) -> FleetError:
        try:
            answer = json.loads(text)
            code, message = str(answer["code"]), str(answer["detail"])
        except (ValueError, KeyError, TypeError):
            return self._no_server(f"it answered with status {status}")
        mismatch = Mismatch if status == Mismatch.http_status and code in MISMATCHES else None
        kind = BY_CODE.get(code) or mismatch or BY_STATUS.get(status, FleetError)
        error = kind(message, fix=str(answer.get("fix", "")), code=code)
        error.about = {key: value for key, value in answer.items() if key not in PROBLEM}
        return error

    def _no_server(self, why: str) -> Unavailable:
        fix = "Check the address. On the server's machine: fleet serve --background"
        if self._variable:
            fix = f"Is {self._variable} right? `fleet serve --background` starts a server here."
        return Unavailable(
            f"No Fleet server answers at {self.url}: {why}.",
            fix=fix,
            code="no_server",
        )


def _has_place(url: str, parts: SplitResult) -> bool:
    """A host, and a port that can be or none at all, without what no request can hold."""
    try:
        return bool(parts.hostname) and parts.port != 0 and url.isprintable() and " " not in url
    except ValueError:
        return False
