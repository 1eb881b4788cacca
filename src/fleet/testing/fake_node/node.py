"""A stand-in for a node: it answers as Ollama does (or vLLM, llama.cpp, LM Studio), and fails as told.

    with FakeNode(["qwen2.5-coder:7b"], decode=50) as node:
        ask(node.url)
        node.set(die=3)            # the next replies break after three pieces
        node.set(refuse=True)      # the port is closed
        node.heal()
        assert node.asked("/api/chat")[0].body["options"]["num_ctx"] == 8192

    python -m fleet.testing.fake_node.node --port 11500 --model qwen2.5-coder:7b --decode 50
    curl -d '{"hang": true}' http://127.0.0.1:11500/fault; curl http://127.0.0.1:11500/seen

It has no model: a reply is a count of words, or what `reply` makes of the request. What the faults are
is in `fake_node.manner`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fleet.domain.nodes.kinds import KINDS, kind_of
from fleet.testing.fake_node.http import Connection, Left, NodeHttpRequest
from fleet.testing.fake_node.manner import (
    FAULTS,
    NAMES,
    FakeModel,
    LoadedModel,
    Manner,
    SeenRequest,
    takes_fault,
)
from fleet.testing.fake_node.pages import pages, show
from fleet.testing.fake_node.work import Died, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["FakeModel", "FakeNode", "Manner", "SeenRequest"]

HTML = b"<!doctype html><html><body><h1>It works!</h1></body></html>"


class FakeNode:
    """`key`: what `Authorization: Bearer` or `x-api-key` must hold. The rest is a `Manner`."""

    def __init__(
        self,
        models: Iterable[str | FakeModel] = ("qwen2.5-coder:7b",),
        *,
        kind: str = "ollama",
        port: int = 0,
        key: str = "",
        **manner: Any,
    ) -> None:
        on_disk = [FakeModel(model) if isinstance(model, str) else model for model in models]
        self.models = {model.name: model for model in on_disk}
        self.kind, self.port, self._key = kind, port, key
        self.manner = Manner(**manner)
        self.held = LoadedModel()
        self.seen: list[SeenRequest] = []
        self._worker = Worker(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: asyncio.Server | None = None
        self._hole: list[socket.socket] = []
        self._open: set[Connection] = set()
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def busy(self) -> int:
        """Requests that it is at work on now."""
        return self._worker.busy

    @property
    def most(self) -> int:
        """The most requests that it ever worked on at once."""
        return self._worker.most

    @property
    def resident(self) -> dict[str, int]:
        """The loaded models and their context sizes."""
        return dict(self.held.resident)

    def asked(self, path: str) -> list[SeenRequest]:
        return [seen for seen in list(self.seen) if seen.path == path]

    def until(self, condition: Callable[[Self], object], timeout: float = 60.0) -> None:
        """Wait until this is so of the node."""
        deadline = time.monotonic() + timeout
        while not condition(self):
            if time.monotonic() > deadline:
                raise AssertionError(f"Not so within {timeout} s; seen: {self.seen!r:.2000}")
            time.sleep(0.01)

    def set(self, **manner: Any) -> None:
        """Change how it behaves; what is not named stays as it is."""
        self._call(self._set(manner))

    def heal(self) -> None:
        """Without faults; its speeds stay."""
        self._call(self._set(HEALED))

    def load(self, model: str, context: int = 4096) -> None:
        self.held.resident[model] = context

    def start(self) -> Self:
        if self._thread is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
            self._thread.start()
        self._call(self._settle())
        return self

    def stop(self) -> None:
        assert self._loop is not None
        assert self._thread is not None
        self._call(self._down())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def __aenter__(self) -> Self:
        """In the loop that runs, in place of a thread; then `change` is `set`."""
        self._loop = asyncio.get_running_loop()
        await self._settle()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._down()

    async def change(self, **manner: Any) -> None:
        await self._set(manner)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _call(self, coroutine: Any) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _set(self, manner: dict[str, Any]) -> None:
        self.manner = replace(self.manner, **manner)
        await self._settle()
        await self._worker.look_again()

    async def _settle(self) -> None:
        """Listen, or do not, as the manner says."""
        refuse, drop = self.manner.refuse, self.manner.drop
        if refuse or drop:
            await self._down()
            if drop:
                self._swallow()
            elif not isinstance(refuse, bool) and refuse < math.inf:
                asyncio.get_running_loop().call_later(
                    refuse, lambda: asyncio.ensure_future(self._set(HEALED))
                )
        elif self._server is None:
            self._fill_up()
            self._server = await asyncio.start_server(
                self._serve, "127.0.0.1", self.port, backlog=512, limit=1 << 24, reuse_address=True
            )
            self.port = self._server.sockets[0].getsockname()[1]

    async def _down(self) -> None:
        self._fill_up()
        if self._server is not None:
            self._server.close()
            self._server = None
            self.held.forget()
        for connection in list(self._open):
            connection.abort()
        await asyncio.sleep(0.01)

    def _swallow(self) -> None:
        """A port whose queue is full and never emptied: Linux drops the next greeting."""
        hole = socket.socket()
        hole.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        hole.bind(("127.0.0.1", self.port))
        hole.listen(0)
        self._hole.append(hole)
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            with suppress(BlockingIOError):
                filler.connect(("127.0.0.1", self.port))
            self._hole.append(filler)

    def _fill_up(self) -> None:
        while self._hole:
            self._hole.pop().close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        self._open.add(connection)
        used = False
        try:
            while (request := await connection.request(self.manner.idle)) is not None:
                if used and self.manner.stale:
                    connection.abort()
                    break
                used = True
                seen = SeenRequest(*request, at=time.time())
                self.seen.append(seen)
                connection.watch()
                seen.outcome = await self._outcome(connection, request, seen)
                await connection.unwatch()
                if seen.outcome not in {"answered", "failed"}:
                    break
        finally:
            self._open.discard(connection)
            connection.close()

    async def _outcome(
        self, connection: Connection, request: NodeHttpRequest, seen: SeenRequest
    ) -> str:
        try:
            await connection.pause(self.manner.lag)
            if takes_fault(self.manner, request.path) and await self._fault(
                connection, request.path
            ):
                return "failed"
            await self._answer(connection, request, seen)
        except Left:
            return "left"
        except Died:
            connection.abort()
            return "died"
        finally:
            connection.drip = 0.0
        return "answered"

    async def _fault(self, connection: Connection, path: str) -> bool:
        """Whether that was the answer."""
        manner = self.manner
        connection.drip = manner.drip
        if manner.hang:
            await connection.pause(math.inf if manner.times is None else 3600)
        if manner.status:
            more = {"retry_after": manner.after} if manner.after else {}
            body = manner.body or json.dumps({"error": manner.message})
            await connection.answer(manner.status, "application/json", body.encode(), **more)
        elif manner.location:
            await connection.answer(307, "text/plain", b"", location=manner.location + path)
        elif manner.html:
            await connection.answer(200, "text/html", HTML)
        elif manner.body:
            await connection.answer(200, "application/json", manner.body.encode())
        elif manner.events:
            await connection.answer(200, "text/event-stream", manner.events.encode())
        elif manner.garbage:
            await connection.answer(200, "application/json", b'{"models": [{"name": ')
        else:
            return False
        return True

    async def _answer(
        self, connection: Connection, request: NodeHttpRequest, seen: SeenRequest
    ) -> None:
        method, path, _, body = request
        if path == "/seen":
            await connection.json(200, [asdict(each) for each in self.seen if each is not seen])
        elif path == "/fault":
            manner = _fields(request)
            asyncio.get_running_loop().call_later(
                0.02, lambda: asyncio.ensure_future(self._set(manner))
            )
            await connection.json(200, {"ok": True})
        elif self._key and self._key not in (_bearer(request), request.headers.get("x-api-key")):
            await connection.json(401, {"error": "unauthorized"})
        elif method == "GET":
            at_work = (self.busy, self._worker.waiting)
            replies = pages(self.kind, self.models, self.manner, self.held.resident, at_work)
            page = replies.get(path)
            if isinstance(page, str):
                await connection.answer(200, "text/plain", page.encode())
            else:
                await connection.json(404 if page is None else 200, page or {"error": "not found"})
        elif path == "/api/show" and kind_of(self.kind).is_ollama:
            name = str((body or {}).get("model") or (body or {}).get("name"))
            model = self.models.get(name) or self.models.get(name.removesuffix(":latest"))
            gone = {"error": "model not found"}
            await connection.json(200 if model else 404, show(model) if model else gone)
        else:
            await self._worker.work(connection, request, seen)


HEALED = {name: getattr(Manner(), name) for name in (*FAULTS, "only", "times")}


def _fields(request: NodeHttpRequest) -> dict[str, Any]:
    if request.method == "DELETE":
        return HEALED
    return {name: value for name, value in (request.body or {}).items() if name in NAMES}


def _bearer(request: NodeHttpRequest) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for a node.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--kind", choices=list(KINDS), default="ollama")
    parser.add_argument("--key", default="")
    parser.add_argument("--ready", type=Path, help="a file that is given the address")
    for name, rate in (("prefill", 0.0), ("decode", 0.0), ("load", 0.0), ("lag", 0.0)):
        parser.add_argument(f"--{name}", type=float, default=rate)
    for name, rate in (("idle", 0.0), ("drag", 1.0)):
        parser.add_argument(f"--{name}", type=float, default=rate)
    for name, default in (("slots", 1), ("output", 8), ("fits", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = vars(parser.parse_args())
    models, ready = options.pop("model") or ["qwen2.5-coder:7b"], options.pop("ready")
    with FakeNode(models, **options) as node:
        if ready:
            ready.write_text(node.url)
        threading.Event().wait()


if __name__ == "__main__":
    main()
