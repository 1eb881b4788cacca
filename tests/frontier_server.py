"""A scripted stand-in for OpenRouter: hosted models that answer as they are told, with prices.

    with FrontierServer({"acme/clever": answer}) as server:
        fleet("eval", "--frontier", "acme/clever", "--frontier-url", server.url)

It is no model: what it answers was written by people.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KEY = "sk-scripted"
COST = 0.001  # dollars of one request, of models that say it
PRICES = {"prompt": "0.000001", "completion": "0.000002"}


class FrontierServer:
    """`models`: by name, the text of a reply to a body. Those in `silent` do not say what they cost."""

    def __init__(
        self, models: Mapping[str, Callable[[dict], Any]], *, silent: tuple[str, ...] = ()
    ) -> None:
        self.models, self.silent = models, silent
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                listed = [{"id": name, "pricing": PRICES} for name in outer.models]
                self._send(200, "application/json", json.dumps({"data": listed}).encode())

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.keys.add(self.headers.get("authorization", ""))
                outer.requests.append(body)
                reply = outer.models[body["model"]](body)
                events = outer.events(body["model"], reply)
                self._send(200, "text/event-stream", events)

            def _send(self, status: int, kind: str, data: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/api/v1"

    def events(self, model: str, reply: str) -> bytes:
        deltas = [{"choices": [{"delta": {"content": p}}]} for p in re.findall(r"\s*\S+\s*", reply)]
        usage: dict[str, Any] = {"prompt_tokens": 1000, "completion_tokens": 500}
        usage |= {} if model in self.silent else {"cost": COST}
        lines = [json.dumps(each) for each in [*deltas, {"choices": [], "usage": usage}]]
        return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
