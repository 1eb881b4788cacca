"""`fleet mcp`: the server's tools for programs that speak MCP over their pipes alone.

A line in is a POST to `/mcp`, its answer a line out. Where no server runs, and none is named, it
answers by itself; see `fleet.server.mcp.stdio`. Nothing is imported that is not needed for that: every
agent may start one.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from typing import BinaryIO

    from fleet.app.server_address import Remote
    from fleet.server.mcp.stdio import LocalTools

INTERNAL = -32603
PARSE = -32700
UNSERVED = frozenset({"bad_token", "no_server"})  # also one with a key that is not ours


class McpBridge:
    """Answers come in the order in which they are ready; each has the number of its question."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._remote: Remote | None = None
        self._version = ""
        self._here: LocalTools | None = None
        self._alone: Executor | None = None

    def serve(self, lines: BinaryIO) -> None:
        threads: list[threading.Thread] = []
        for line in lines:
            if not line.strip():
                continue
            threads = [thread for thread in threads if thread.is_alive()]
            thread = threading.Thread(target=self._answer, args=(line,))
            thread.start()
            threads.append(thread)
            if b'"initialize"' in line:  # what follows depends on what was agreed
                thread.join()
        for thread in threads:
            thread.join()

    def _answer(self, line: bytes) -> None:
        from fleet.domain.errors import FleetError

        number = None
        try:
            request = json.loads(line)
            number = request.get("id") if isinstance(request, dict) else None
            reply = self._reply(line, request)
        except FleetError as error:
            if number is not None:
                self._fail(number, INTERNAL, f"{error.message} {error.fix}".strip())
        except ValueError as error:
            self._fail(None, PARSE, f"It is not JSON: {error}.")
        else:
            self._note(reply)
            self._write(reply.encode())

    def _reply(self, line: bytes, request: Any) -> str:
        """Send a line to the server; if that fails, look for the server again, with a new token."""
        from fleet.domain.errors import FleetError

        try:
            return self._server().post("/mcp", line, self._headers())
        except FleetError as error:
            with self._lock:
                self._remote = None
            if error.code not in {"expired_token", *UNSERVED}:
                raise
        try:
            return self._server().post("/mcp", line, self._headers())
        except FleetError as error:
            if error.code not in UNSERVED or is_named():
                raise
        return self._reply_here(request)

    def _reply_here(self, request: Any) -> str:
        """Answer without a server, in the one thread to which the store belongs."""
        from concurrent.futures import ThreadPoolExecutor

        if not isinstance(request, dict):
            raise ValueError("it is no object")  # noqa: TRY004  # as all that cannot be read
        with self._lock:
            if self._alone is None:
                self._alone = ThreadPoolExecutor(1)
        return self._alone.submit(self._answered_here, request).result().decode()

    def _answered_here(self, request: dict[str, Any]) -> bytes:
        if self._here is None:
            from fleet.server.mcp.stdio import LocalTools

            self._here = LocalTools()
        return self._here.answer(request)

    def _server(self) -> Remote:
        with self._lock:
            if self._remote is None:
                self._remote = find()
            return self._remote

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream"}
        return headers | ({"MCP-Protocol-Version": self._version} if self._version else {})

    def _note(self, text: str) -> None:
        if '"protocolVersion"' in text:
            self._version = str(json.loads(text).get("result", {}).get("protocolVersion", ""))

    def _fail(self, number: Any, code: int, text: str) -> None:
        error = {"code": code, "message": text}
        self._write(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode())

    def _write(self, data: bytes) -> None:
        if data.strip():
            with self._lock:
                self._out.write(data.strip().replace(b"\n", b" ") + b"\n")
                self._out.flush()


def find() -> Remote:
    """The server of FLEET_URL, else this home's."""
    from pathlib import Path

    from fleet.app import App
    from fleet.app.server_address import remote_of

    return remote_of(App(Path.cwd(), os.environ))


def is_named() -> bool:
    """Whether FLEET_URL names the server, so that no other may be used."""
    from fleet.app.server_address import named_url

    return bool(named_url(os.environ) or os.environ.get("FLEET_TOKEN"))


def bridge() -> int:
    try:
        McpBridge(sys.stdout.buffer).serve(sys.stdin.buffer)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0
