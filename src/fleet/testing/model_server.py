"""A scripted model on loopback, for trying coders without one.

It speaks Anthropic Messages, OpenAI Responses, Chat Completions and Gemini, and keeps all that it
was asked. What it replies is in `fleet.testing.models.script`.

    with ModelServer([call("Bash", command="ls"), say("Done.")]) as server:
        run_a_coder_against(server.url)
        assert "ls" in server.turns[1].results[0]

    python -m fleet.testing.model_server --script replies.json --port 8399
"""

from __future__ import annotations

import argparse
import json
import math
import secrets
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from fleet.testing.models.anthropic import Anthropic
from fleet.testing.models.chat import Chat
from fleet.testing.models.gemini import Gemini
from fleet.testing.models.responses import Responses
from fleet.testing.models.script import (
    Asked,
    Call,
    Fail,
    Reply,
    Say,
    Script,
    Think,
    Tokens,
    Wait,
    after,
    call,
    fail,
    hang,
    limited,
    read_script,
    reply_to,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.testing.models.dialect import ProviderDialect, ServerSentEvent

__all__ = [
    "Asked", "Call", "Fail", "ModelServer", "Reply", "Say", "Think", "Tokens", "Wait",
    "after", "call", "fail", "hang", "limited", "read_script", "say",
]  # fmt: skip

STREAMED = ":streamGenerateContent"
DIALECTS: dict[str, ProviderDialect] = {
    "/messages": Anthropic(),
    "/responses": Responses(),
    "/chat/completions": Chat(),
    STREAMED: Gemini(),
    ":generateContent": Gemini(),
}
TITLE = say("A title")


class ModelServer:
    """`aside` answers what comes without tools, as coders ask for titles; None: the script does."""

    def __init__(
        self, script: Script = (), *, port: int = 0, aside: Reply | None = TITLE, model: str = ""
    ) -> None:
        self._script = script
        self.aside = aside
        self._model = model or "scripted"
        self._news = threading.Condition()
        self._over = threading.Event()
        self._counts: dict[str, int] = {}
        self.requests: list[Asked] = []
        self._http = _Http(("127.0.0.1", port), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Without the `/v1`, which is what Anthropic's clients want."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def turns(self) -> list[Asked]:
        """The requests that the script has answered."""
        return [request for request in self.requests if request.dialect and not request.aside]

    def until(self, condition: Callable[[Asked], bool], *, timeout: float = 60.0) -> Asked:
        """The first request, past or to come, that is so."""
        with self._news:
            self._news.wait_for(lambda: any(map(condition, self.requests)), timeout)
            request = next(filter(condition, self.requests), None)
        if request is None:
            raise AssertionError(
                f"Not asked within {timeout} s; there were {self.requests!r:.2000}"
            )
        return request

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()

    def serve(self) -> None:
        """Until interrupted."""
        self._http.serve_forever(0.5)

    def hear(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Asked:
        dialect = next((d for end, d in DIALECTS.items() if path.endswith(end)), None)
        request = Asked(path, headers, body)
        with self._news:
            if dialect is not None:
                request = self._read(request, dialect)
            self.requests.append(request)
            self._news.notify_all()
        return request

    def _read(self, request: Asked, dialect: ProviderDialect) -> Asked:
        fields = dialect.read(request.body, request.headers)
        aside = not fields["tools"] and self.aside is not None
        first = fields["said"][:1]
        conversation = fields.pop("conversation") or f"{dialect.name}:{first}"
        number = self._counts.get(conversation, 0)
        if not aside:
            self._counts[conversation] = number + 1
        return Asked(
            request.path,
            request.headers,
            request.body,
            dialect=dialect.name,
            conversation=conversation,
            number=number,
            id=secrets.token_hex(6),
            model=str(request.body.get("model", "")) or _in_path(request.path),
            aside=aside,
            **fields,
        )

    def reply(self, request: Asked) -> Reply:
        if request.aside and self.aside is not None:
            return self.aside
        return reply_to(self._script, request)

    def pause(self, wait: Wait) -> bool:
        """False when the server is over, and with it all that hangs."""
        return not self._over.wait(None if math.isinf(wait.seconds) else wait.seconds)

    def known(self, path: str) -> dict[str, Any] | None:
        """What is asked beside replies."""
        if path.endswith("/models"):
            model = {"id": self._model, "object": "model", "created": 0, "owned_by": "fleet"}
            return {"object": "list", "data": [model], "models": [], "has_more": False}
        if path.endswith(":countTokens"):
            return {"totalTokens": 100}
        if path.endswith("/count_tokens"):
            return {"input_tokens": 100}
        return {} if path in {"", "/"} else None


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Coders are killed in the middle of a reply; anything else is worth a traceback."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _handler(model: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        server_model = model

    return Handler


class _Handler(BaseHTTPRequestHandler):
    server_model: ModelServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer({})

    def do_HEAD(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            self._send(400, {"error": "The body is not JSON."})
            return
        self._answer(body)

    def _answer(self, body: dict[str, Any]) -> None:
        path = urlsplit(self.path).path
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = self.server_model.hear(path, headers, body)
        if not request.dialect:
            known = self.server_model.known(path)
            self._send(404 if known is None else 200, known or {})
            return
        reply = self.server_model.reply(request)
        dialect = next(d for d in DIALECTS.values() if d.name == request.dialect)
        if reply.fail is not None:
            shape = reply.fail.body or dialect.failure(reply.fail)
            self._send(reply.fail.status, shape, reply)
        elif body.get("stream") or path.endswith(STREAMED):
            self._stream(dialect, reply, request)
        elif all(self.server_model.pause(p) for p in reply.parts if isinstance(p, Wait)):
            self._send(200, dialect.whole(reply, request), reply)

    def _send(self, status: int, shape: Any, reply: Reply | None = None) -> None:
        data = json.dumps(shape).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (reply.headers if reply else {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, dialect: ProviderDialect, reply: Reply, request: Asked) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for event in dialect.stream(reply, request):
            if isinstance(event, Wait):
                if not self.server_model.pause(event):
                    self.close_connection = True
                    return
                continue
            self._chunk(_encoded(event))
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        pass


def _in_path(path: str) -> str:
    """`…/models/NAME:generateContent`."""
    return path.rpartition("/")[2].partition(":")[0] if ":" in path else ""


def _encoded(event: ServerSentEvent) -> bytes:
    data = event.data if isinstance(event.data, str) else json.dumps(event.data)
    name = f"event: {event.name}\n" if event.name else ""
    return f"{name}data: {data}\n\n".encode()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m fleet.testing.model_server")
    parser.add_argument("--script", type=Path, help="JSON: a list of replies, or several by prompt")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--model", default="", help="the name that /v1/models lists")
    given = parser.parse_args(argv)
    script = read_script(json.loads(given.script.read_text())) if given.script else ()
    server = ModelServer(script, port=given.port, model=given.model)
    print(server.url, flush=True)  # noqa: T201  # it is a program
    with suppress(KeyboardInterrupt):
        server.serve()


if __name__ == "__main__":
    main()
