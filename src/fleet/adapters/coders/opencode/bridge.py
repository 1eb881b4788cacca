"""OpenCode's server on standard input and output, which is all that a keeper keeps.

    opencode_bridge.py opencode serve --hostname 127.0.0.1 --port 0

    in     {"id": "…", "method": "POST", "path": "/session", "body": {…}}      one request a line
    out    {"id": "…", "status": 200, "body": {…}}                             in the same order
    out    {"at": 1794734591006, "event": {…}}                                 what it said, and when

It runs by itself, of the standard library alone. It ends when its input does, and the server with
it; when the server ends by itself, with the same status. The server's password is made here and is
known to nobody else, since anyone on this machine can reach its port.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import secrets
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

LISTENING = re.compile(rb"http://127\.0\.0\.1:(\d+)")
SILENCE = 90.0  # seconds; it says something every ten
REQUEST_SECONDS = 300.0  # seconds for one request; the first one loads everything
GRACE = 5.0  # seconds to end when asked


class OpenCodeBridge:
    def __init__(self, argv: list[str]) -> None:
        self._password = secrets.token_hex(16)
        env = {**os.environ, "OPENCODE_SERVER_PASSWORD": self._password}
        self._server = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        self._sieve = Sieve()
        self._out = threading.Lock()
        self._over = threading.Event()
        self._status = 0

    def run(self) -> int:
        assert self._server.stdout is not None
        listening = next(filter(None, map(LISTENING.search, self._server.stdout)), None)
        if listening is None:
            return self._server.wait()
        self._port = int(listening[1])
        events = self._open("GET", "/event", None, SILENCE)
        for work in (self._drain, self._wait, lambda: self._hear(events), self._obey):
            threading.Thread(target=work, daemon=True).start()
        self._over.wait()
        return self._end()

    def _end(self) -> int:
        """OpenCode's exit status: it has ended by itself, or is ended now, since our input has."""
        ended = self._server.poll()
        if ended is not None:
            return ended
        self._server.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._server.wait(GRACE)
            return self._status
        self._server.kill()
        return self._status

    def _drain(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()

    def _wait(self) -> None:
        self._server.wait()
        self._over.set()

    def _hear(self, events: http.client.HTTPResponse) -> None:
        try:
            for line in events:
                if line.startswith(b"data:"):
                    event = json.loads(line[5:])
                    if self._sieve.keeps(event):
                        self._say({"at": time.time_ns() // 1_000_000, "event": event})
        finally:  # without what it says there is no conversation
            time.sleep(0.2)  # perhaps it is ending, and its own status says more
            self._status = 1
            self._over.set()

    def _obey(self) -> None:
        try:
            for line in sys.stdin:
                order = json.loads(line)
                self._say({"id": order["id"], **self._ask(order)})
        finally:
            self._over.set()

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        try:
            reply = self._open(order["method"], order["path"], order.get("body"), REQUEST_SECONDS)
            body = reply.read()
        except OSError as error:
            return {"status": 0, "body": str(error)}
        is_json = "json" in (reply.getheader("content-type") or "")
        content = json.loads(body) if body and is_json else body.decode("utf-8", "replace")
        return {"status": reply.status, "body": content}

    def _open(self, method: str, path: str, body: Any, timeout: float) -> http.client.HTTPResponse:
        login = base64.b64encode(f"opencode:{self._password}".encode()).decode()
        headers = {"authorization": f"Basic {login}", "content-type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout)
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection.getresponse()

    def _say(self, record: dict[str, Any]) -> None:
        with self._out:
            sys.stdout.write(json.dumps(record) + "\n")
            sys.stdout.flush()


class Sieve:
    """Lets through what is new: the server repeats a part, whole, with every word it grows by."""

    KINDS = frozenset(
        {"session.status", "session.error", "message.updated", "message.part.updated"}
        | {"permission.asked", "question.asked"}
    )

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def keeps(self, event: dict[str, Any]) -> bool:
        try:
            return self._tells(event)
        except (AttributeError, KeyError, TypeError):
            return True  # of another release: its reader may know it

    def _tells(self, event: dict[str, Any]) -> bool:
        kind, properties = event.get("type"), event.get("properties", {})
        if kind not in self.KINDS:
            return False
        if kind == "message.updated":
            return self._is_new(properties["info"]["id"], "")
        if kind != "message.part.updated":
            return True
        part = properties["part"]
        match part["type"]:
            case "tool":
                return self._is_new(part["id"], part["state"]["status"])
            case "text" | "reasoning":
                times = part.get("time")
                return (times is None or "end" in times) and self._is_new(part["id"], "")
            case "step-finish":
                return self._is_new(part["id"], "")
        return False

    def _is_new(self, name: str, state: str) -> bool:
        key = (name, state)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


def main(argv: list[str]) -> int:
    try:
        code = OpenCodeBridge(argv).run()
    except OSError as error:  # in the words of a keeper that cannot start a coder
        sys.stderr.write(f"fleet: {error.filename or argv[0]}: {error.strerror or error}\n")
        return 127 if isinstance(error, FileNotFoundError) else 126
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # threads that still read would hold it up
