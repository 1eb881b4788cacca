"""A relay on loopback with loopback-in nodes behind it."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

from fleet.adapters.relay.app import Relay
from fleet.adapters.relay.plan import plan_of, relay_config
from fleet.adapters.relay.process import open_relay
from fleet.domain.fleet import Fleet, Gateway, Model, Node, Serving
from fleet.testing.fake_node.node import FakeNode
from tests.wait import LIMIT, until

MODEL = "coder"
UPSTREAM = "qwen2.5-coder:7b"
HELLO = [{"role": "user", "content": "Hello"}]


class Got(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def lines(self):
        return [json.loads(line) for line in self.text.splitlines() if line]


def serving(node: FakeNode, name: str, *, slots=1, timeout=60.0, total=0, key="") -> Serving:
    made = Node(name, node.kind, node.url, max_parallel=total, api_key=key)
    return Serving(made, UPSTREAM, 8192, timeout, slots)


def fleet_of(*models: Model) -> Fleet:
    nodes = {s.node.name: s.node for model in models for s in model.servings}
    return Fleet("shop", Gateway(), nodes, {model.name: model for model in models})


class LoopbackRelay:
    """`nodes` in their order are a, b, c …, which all serve MODEL."""

    def __init__(self, nodes: int = 1, *, traces=None, **manner) -> None:
        self._stack = ExitStack()
        self.nodes = [self.node(**manner) for _ in range(nodes)]
        self._traces = traces
        self.url = ""
        self.port = 0

    def node(self, **manner) -> FakeNode:
        return self._stack.enter_context(FakeNode([UPSTREAM], **manner))

    def servings(self, **rest) -> tuple[Serving, ...]:
        return tuple(serving(n, "abcdef"[i], **rest) for i, n in enumerate(self.nodes))

    def open(self, *models: Model, slots=1, **settings) -> LoopbackRelay:
        models = models or (Model(MODEL, MODEL, self.servings(slots=slots)),)
        if self._traces:
            settings["traces"] = str(self._traces)
        config = relay_config(fleet_of(*models), **{"port": 0} | settings)
        self.relay = Relay(plan_of(json.loads(json.dumps(config))))
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(LIMIT)
        return self

    def _run(self, ready: threading.Event) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._over = asyncio.Event()
            async with open_relay(self.relay) as (_, self.port):
                ready.set()
                await self._over.wait()

        asyncio.run(main())

    def close(self) -> None:
        if self.port:
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join(LIMIT)
        self._stack.close()

    def connect(self, timeout=LIMIT) -> http.client.HTTPConnection:
        """It is closed with the relay at the latest."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        self._stack.callback(connection.close)
        return connection

    def get(self, path: str) -> Got:
        return self.ask("GET", path, None)

    def ask(self, method: str, path: str, body, headers=None, timeout=LIMIT) -> Got:
        connection = self.connect(timeout)
        try:
            connection.request(method, path, body and json.dumps(body), headers or {})
            answer = connection.getresponse()
            held = {k.lower(): v for k, v in answer.getheaders()}
            return Got(answer.status, held, answer.read().decode())
        finally:
            connection.close()

    def post(self, path: str, *, model=MODEL, headers=None, timeout=LIMIT, **body) -> Got:
        return self.ask("POST", f"/m/{model}{path}", {"model": model, **body}, headers, timeout)

    def chat(self, *, model=MODEL, headers=None, messages=None, timeout=LIMIT, **body) -> Got:
        messages = messages or HELLO
        return self.post(
            "/api/chat", model=model, headers=headers, timeout=timeout, messages=messages, **body
        )

    def chats(self, count: int, **body) -> list[Got]:
        """At the same time."""
        with ThreadPoolExecutor(count) as pool:
            return [f.result() for f in [pool.submit(self.chat, **body) for _ in range(count)]]

    @property
    def status(self):
        return self.get("/relay/status").json

    def until(self, found) -> None:
        """Wait until this is so of what the relay says of itself."""
        until(lambda: found(self.status), why=lambda: str(self.status))

    def traces(self, count: int):
        until(lambda: len(self._lines()) >= count, why=lambda: str(self._lines()))
        return [json.loads(line) for line in self._lines()]

    def _lines(self) -> list[str]:
        """The whole lines of the traces; the relay may be writing the next one."""
        text = self._traces.read_text() if self._traces.exists() else ""
        return text.rpartition("\n")[0].splitlines()
