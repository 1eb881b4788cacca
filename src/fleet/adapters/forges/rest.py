"""Requests to a forge: one deadline each, with its rules about how often it may be asked."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from fleet import __version__
from fleet.adapters.nodes.http import Asking, NoAnswer
from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from http.client import HTTPConnection, HTTPMessage

    from fleet.adapters.nodes.http import NodeAnswer

REQUEST_SECONDS = 15.0  # for a request and its reply
MOST_KEPT = 500  # answers that are kept with their ETag
RESERVE = 0.4  # share of the hourly rate limit that reads leave for writes
LONGEST_PAUSE = 3600.0  # the most seconds to wait when a forge asks for it
WORDS = 300  # characters of a forge's error that are kept
OK, ELSEWHERE, NOT_MODIFIED, BAD, SERVER_ERROR = 200, 300, 304, 400, 500
NO_TOKEN, FORBIDDEN, GONE, TOO_MANY = 401, 403, 404, 429


class _AskingForge(Asking):
    """Connects through the proxy of the environment, as git and curl do."""

    connect_seconds = 5.0

    def _connection_to(self, host: str, seconds: float) -> HTTPConnection:
        proxy = "" if proxy_bypass(host) else getproxies().get(self._parts.scheme, "")
        if not proxy:
            return super()._connection_to(host, seconds)
        from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415  # behind proxies

        through = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        where = through.hostname or "", through.port or 3128
        if self._parts.scheme != "https":
            return HTTPConnection(*where, timeout=seconds)
        connection = HTTPSConnection(*where, timeout=seconds)
        connection.set_tunnel(host, self._parts.port or 443)
        return connection

    def target(self, path: str) -> str:
        """Return the target of the request line, for an http proxy the whole URL."""
        host = self._parts.hostname or ""
        plain = self._parts.scheme != "https" and not proxy_bypass(host)
        return f"{self._base}{path}" if plain and getproxies().get("http") else path

    @property
    def _base(self) -> str:
        return f"{self._parts.scheme}://{self._parts.netloc}"


class Rest:
    """The API of one host. `headers` is called for each request, as it returns the token.

    Replies with an ETag are cached, and only sent again by the forge if they have changed. While
    the forge asks us to wait, nothing is sent. Thread-safe.
    """

    def __init__(
        self,
        base: str,
        headers: Callable[[], Mapping[str, str]],
        *,
        within: float = REQUEST_SECONDS,
    ) -> None:
        self.base = base.rstrip("/")
        self.host = urlsplit(base).netloc
        self._headers, self._within = headers, within
        self._kept: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._closed_until = 0.0  # monotonic time until which no request is sent
        self._scarce_until = 0.0  # monotonic time until which nothing is read

    def get(self, path: str, **query: object) -> Any:
        """The answer, perhaps one that the forge says has not changed since."""
        target = f"{path}?{urlencode(query)}" if query else path
        if (rest := self._scarce_until - time.monotonic()) > 0:
            raise self._wait(rest, "has few requests left for this token; waiting")
        with self._lock:
            etag, value = self._kept.get(target, ("", None))
        answer = self._exchange("GET", target, None, {"If-None-Match": etag} if etag else {})
        if answer.status == NOT_MODIFIED:
            return value
        value = self._value(answer)
        self._keep(target, answer.headers.get("ETag", ""), value)
        return value

    def send(self, method: str, path: str, body: Any) -> Any:
        return self._value(self._exchange(method, path, body, {}))

    def _keep(self, target: str, etag: str, value: Any) -> None:
        with self._lock:
            self._kept.pop(target, None)
            if etag:
                self._kept[target] = (etag, value)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def _exchange(self, method: str, path: str, body: Any, more: Mapping[str, str]) -> NodeAnswer:
        if (rest := self._closed_until - time.monotonic()) > 0:
            raise self._wait(rest, "asks Fleet to wait")
        parts = urlsplit(self.base)
        headers = {**self._headers(), **more, "User-Agent": f"fleet/{__version__}"}
        try:
            with _AskingForge(self.base, headers, within=self._within) as asking:
                answer = asking.exchange(method, asking.target(parts.path + path), body)
        except NoAnswer as error:
            raise Unavailable(
                f"{self.host} cannot be reached: {error.message}.",
                fix="Fleet tries again by itself.",
                code="forge_down",
            ) from None
        self._heed(answer)
        return answer

    def _heed(self, answer: NodeAnswer) -> None:
        """Remember how long the forge wants us to wait, and whether its limit is nearly used up."""
        now, headers = time.monotonic(), answer.headers
        left, limit = (_number(headers, name) for name in ("Remaining", "Limit"))
        reset = _number(headers, "Reset")
        until_reset = min(max(0.0, (reset or 0) - time.time()), LONGEST_PAUSE)
        if left is not None and limit and left < RESERVE * limit:
            self._scarce_until = now + until_reset
        spent = answer.status == FORBIDDEN and left == 0
        wait = headers.get("Retry-After", "") if answer.status >= BAD else ""
        if answer.status == TOO_MANY or spent or wait:
            seconds = float(wait) if wait.isdecimal() else (until_reset or 60.0)
            self._closed_until = now + min(seconds, LONGEST_PAUSE)
            raise self._wait(seconds, "asks Fleet to wait")

    def _wait(self, seconds: float, what: str) -> Unavailable:
        return Unavailable(
            f"{self.host} {what}: {seconds:.0f} s.",
            fix="Fleet tries again by itself.",
            code="forge_busy",
        )

    def _value(self, answer: NodeAnswer) -> Any:
        try:
            value = json.loads(answer.data) if answer.data else None
        except (ValueError, RecursionError):
            value = None
        if answer.status < BAD:
            if OK <= answer.status < ELSEWHERE:
                return value
            raise Refused(
                f"{self.host} redirects (status {answer.status}): the repository may have moved.",
                fix="Give the remote its new address: git remote set-url",
                code="forge_moved",
            )
        words = f"{self.host} answers {answer.status}: {_words(value) or 'no reason given'}"
        if answer.status >= SERVER_ERROR:
            raise Unavailable(words, fix="Fleet tries again by itself.", code="forge_down")
        if answer.status in {NO_TOKEN, FORBIDDEN, GONE}:
            fix = "Check that the token is valid and may do this. See `fleet pr --help`."
            refused = Refused(words, fix=fix, code="forge_token")
        else:
            refused = Refused(words, code="forge_refused")
        refused.about = {"status": answer.status}
        raise refused


def status_of(error: Refused) -> object:
    """Return the HTTP status with which the forge refused."""
    return error.about.get("status")


def _number(headers: HTTPMessage, what: str) -> float | None:
    """Return a rate limit header, whose name begins with X- on GitHub and Gitea."""
    for name in (f"X-RateLimit-{what}", f"RateLimit-{what}"):
        text = headers.get(name, "")
        if text.isdecimal():
            return float(text)
    return None


def _words(value: Any) -> str:
    """Return the message of a forge's error reply, with the details of each error."""
    if not isinstance(value, dict):
        return ""
    parts = [value.get("message") or value.get("error") or ""]
    errors = value.get("errors") or value.get("errorMessages") or ()
    parts += [error.get("message", "") if isinstance(error, dict) else error for error in errors]
    return " ".join(" ".join(str(part) for part in parts if part).split())[:WORDS]


def escaped(text: str) -> str:
    """Quote a text as one part of a path."""
    return quote(text, safe="")
