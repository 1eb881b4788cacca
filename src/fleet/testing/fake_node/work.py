"""A stand-in node at work on a prompt: it waits as long as the work would take."""

from __future__ import annotations

import asyncio
import json
import math
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from fleet.domain.nodes.kinds import kind_of
from fleet.testing.fake_node.wires import WIRES, NodeJob, Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fleet.testing.fake_node.http import Connection, NodeHttpRequest
    from fleet.testing.fake_node.manner import FakeModel, LoadedModel, Manner, SeenRequest

CHARACTERS = 4  # of a token, about
DEFAULT_CONTEXT = 4096  # Ollama's, on a small machine
SLICES = 16  # of loading and reading, between which it looks who else is at work


class Died(Exception):
    """The node breaks the connection in the middle of a reply."""


class _Node(Protocol):
    kind: str
    manner: Manner
    models: dict[str, FakeModel]
    held: LoadedModel


class Worker:
    def __init__(self, node: _Node) -> None:
        self._node = node
        self._gate = asyncio.Condition()
        self.busy = 0
        self.waiting = 0
        self.most = 0

    async def look_again(self) -> None:
        async with self._gate:
            self._gate.notify_all()

    async def work(
        self, connection: Connection, request: NodeHttpRequest, seen: SeenRequest
    ) -> None:
        body = request.body if isinstance(request.body, dict) else {}
        wire = WIRES.get(request.path)
        native = request.path.startswith("/api/")
        if request.path == "/v1/messages/count_tokens":
            await connection.json(200, {"input_tokens": _tokens(_prompt(body))})
        elif request.path in {"/v1/embeddings", "/api/embed"}:
            await connection.json(200, _embeddings(body))
        elif wire is None or (native and not kind_of(self._node.kind).is_ollama):
            await connection.json(404, {"error": "not found"})
        elif self._own_name(body) not in self._node.models:
            text = f"model '{body.get('model')}' not found"
            await connection.json(404, wire.error(text))
        elif why := self._node.manner.broken.get(self._own_name(body)):
            await connection.json(500, wire.error(why))
        else:
            async with self._slot(connection):
                if self._own_name(body) in self._node.manner.silent:
                    await connection.pause(math.inf)
                await self._reply(connection, wire, body, seen, native=native)

    def _own_name(self, body: dict[str, Any]) -> str:
        """Ollama takes `m` for `m:latest`."""
        name = str(body.get("model"))
        return name if name in self._node.models else name.removesuffix(":latest")

    @asynccontextmanager
    async def _slot(self, connection: Connection) -> AsyncIterator[None]:
        self.waiting += 1
        try:
            await connection.turn(self._gate, lambda: self.busy < self._node.manner.slots)
        finally:
            self.waiting -= 1
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            yield
        finally:
            self.busy -= 1
            await self.look_again()

    async def _reply(
        self,
        connection: Connection,
        wire: Wire,
        body: dict[str, Any],
        seen: SeenRequest,
        *,
        native: bool,
    ) -> None:
        manner = self._node.manner
        job = self._job(body, native=native)
        seen.cached, seen.prompt = job.cached, job.prompt
        chip = _Chip(self, manner.drag, connection)
        job.load = await chip.take(job.load)
        job.prefill = await chip.take(job.prefill)
        if not body.get("stream", native):
            job.decode = await chip.take(job.decode)
            await connection.json(200, wire.whole(job))
            return
        await connection.begin(wire.content_type)
        for piece in wire.opening(job):
            await connection.piece(piece)
        each, job.decode = job.decode / max(1, len(job.words)), 0.0
        for word in [] if job.call or job.only_load else job.words:
            if manner.die is not None and seen.pieces >= manner.die:
                raise Died
            if manner.stall is not None and seen.pieces >= manner.stall:
                await connection.pause(math.inf)
            if manner.short is not None and seen.pieces >= manner.short:
                await connection.end()
                return
            seen.pieces += 1
            job.decode += await chip.take(each, slices=1)
            await connection.piece(wire.piece(job, word))
        for piece in wire.closing(job):
            await connection.piece(piece)
        await connection.end()

    def _job(self, body: dict[str, Any], *, native: bool) -> NodeJob:
        manner, state, model = self._node.manner, self._node.held, self._own_name(body)
        options = body.get("options") or {}
        load = 0.0
        context = int(options.get("num_ctx") or (DEFAULT_CONTEXT if native else 0))
        known = state.resident.get(model)
        if known is None or (native and known != context):
            state.unload(model)
            state.load(model, context or self._node.models[model].context, manner.fits)
            load = manner.load
        state.use(model)
        if body.get("keep_alive") == 0:
            state.unload(model)
        text = _prompt(body)
        prompt = _tokens(text)
        cached = state.cached(model, text, manner.slots) // CHARACTERS if text else 0
        limit = _limit(body, options)
        count = min(manner.output, limit) if limit else manner.output
        words = [f" {n}" for n in range(1, count + 1)]
        call: dict[str, Any] = {"name": _call(body) if manner.calls else ""}
        if manner.reply is not None:
            reply = manner.reply(body)
            call = reply if isinstance(reply, dict) else call
            words = re.findall(r"\s*\S+\s*", reply) if isinstance(reply, str) else []
            count = len(words)
        return NodeJob(
            model, prompt, cached, words,
            call=call["name"],
            arguments=call.get("arguments", {}),
            load=load,
            prefill=(prompt - cached) / manner.prefill if manner.prefill else 0.0,
            decode=count / manner.decode if manner.decode else 0.0,
            price=manner.price,
            only_load=native and not body.get("messages") and not body.get("prompt"),
        )  # fmt: skip


class _Chip:
    """The chip, as one request has it: shared with whatever else is at work.

    It keeps to its own timetable, so that a machine which is late loses nothing.
    """

    def __init__(self, worker: Worker, drag: float, connection: Connection) -> None:
        self._worker, self._drag, self._connection = worker, drag, connection
        self._clock = asyncio.get_running_loop().time
        self._due = self._clock()

    async def take(self, seconds: float, slices: int = SLICES) -> float:
        """Work that takes so long alone; how long it takes beside what else is at work."""
        took = 0.0
        for _ in range(slices if seconds > 0 else 0):
            beside = max(0, self._worker.busy - 1)
            each = seconds / slices * (1 + self._drag * beside)
            took, self._due = took + each, self._due + each
            await self._connection.pause(self._due - self._clock())
        return took


def _prompt(body: dict[str, Any]) -> str:
    """Everything that a model would read, in its order."""
    parts = [body[key] for key in ("tools", "system", "instructions") if body.get(key)]
    for key in ("messages", "input", "prompt"):
        content = body.get(key) or []
        parts += content if isinstance(content, list) else [content]
    return "\n".join(part if isinstance(part, str) else json.dumps(part) for part in parts)


def _tokens(text: str) -> int:
    return len(text) // CHARACTERS


def _limit(body: dict[str, Any], options: dict[str, Any]) -> int:
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    limit = options.get("num_predict") or next((body[n] for n in names if body.get(n)), 0)
    return max(0, int(limit))


def _call(body: dict[str, Any]) -> str:
    """The first tool's name, unless one has answered already."""
    text = json.dumps(body.get("messages") or body.get("input") or [])
    answered = ('"role": "tool"', '"tool_result"', '"function_call_output"')
    tools = body.get("tools") or []
    if not tools or any(mark in text for mark in answered):
        return ""
    tool = tools[0]
    return str((tool.get("function") or tool).get("name", ""))


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    given = body.get("input") or []
    texts = given if isinstance(given, list) else [given]
    rows = [
        {"object": "embedding", "index": n, "embedding": [len(str(text)) / 100, 0.5]}
        for n, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": sum(_tokens(str(text)) for text in texts), "total_tokens": 0}
    return {"object": "list", "model": body.get("model"), "data": rows, "usage": usage,
            "embeddings": [row["embedding"] for row in rows]}  # fmt: skip
