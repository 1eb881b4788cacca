"""A relay with stand-in nodes and clients in one loop of virtual time: hours pass in a moment.

async def scenario():
    async with VirtualRelay() as it:
        a = await it.node("a", decode=50)
        await it.open()
        assert (await it.chat()).node == "a"

run(scenario())
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any, NamedTuple, Self

import aiohttp

from fleet.adapters.relay.app import Relay
from fleet.adapters.relay.plan import plan_of, relay_config
from fleet.adapters.relay.process import open_relay
from fleet.domain.fleet import Fleet, Gateway, Model, Node, Serving
from fleet.testing.fake_node.node import FakeNode
from fleet.testing.virtual_time import run

__all__ = ["MODEL", "UPSTREAM", "VirtualRelay", "run", "said"]

MODEL = "coder"
UPSTREAM = "qwen2.5-coder:7b"
LATEST = 100_000.0  # virtual seconds after which what is waited for will never come


class Got(NamedTuple):
    """`first` and `total`: seconds to the first byte and to the last."""

    status: int
    node: str
    route: str
    text: str
    first: float
    total: float

    @property
    def good(self) -> bool:
        return self.status == 200 and '"done": true' in self.text


def said(text: str, role: str = "user") -> dict[str, str]:
    return {"role": role, "content": text}


class VirtualRelay:
    def __init__(self, traces=None) -> None:
        self._stack = AsyncExitStack()
        self._traces = traces
        self.nodes: dict[str, FakeNode] = {}

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0)
        self._client = await self._stack.enter_async_context(
            aiohttp.ClientSession(connector=connector)
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    @property
    def time(self) -> float:
        return asyncio.get_running_loop().time()

    async def node(self, name: str, models=(UPSTREAM,), **manner: Any) -> FakeNode:
        node = FakeNode(models, **manner)
        self.nodes[name] = await self._stack.enter_async_context(node)
        return node

    def serving(self, name: str, upstream=UPSTREAM, **rest: Any) -> Serving:
        fake = self.nodes[name]
        node = Node(name, fake.kind, fake.url, max_parallel=rest.pop("total", 0))
        values = {"context": 32_768, "timeout": 300.0, "slots": fake.manner.slots} | rest
        return Serving(node, upstream, **values)

    def model(self, name: str = MODEL, *servings: Serving, fallbacks=()) -> Model:
        return Model(name, name, servings or tuple(map(self.serving, self.nodes)), fallbacks)

    async def open(self, *models: Model, **settings: Any) -> None:
        """By default every node serves MODEL, in the order of their making."""
        models = models or (self.model(),)
        nodes = {s.node.name: s.node for model in models for s in model.servings}
        fleet = Fleet("shop", Gateway(), nodes, {model.name: model for model in models})
        settings = {"port": 0, "heartbeat": 0, "traces": str(self._traces or "")} | settings
        self.relay = Relay(plan_of(json.loads(json.dumps(relay_config(fleet, **settings)))))
        _, self.port = await self._stack.enter_async_context(open_relay(self.relay))
        await self.until(lambda s: all(n["breaker"] != "closed" or n["looked"] for n in s.values()))

    async def chat(
        self, *messages: dict[str, str], model=MODEL, headers=None, patience=LATEST, **body: Any
    ) -> Got:
        body = {"model": model, "messages": list(messages) or [said("Hello")], **body}
        return await self.post("/api/chat", body, model=model, headers=headers, patience=patience)

    async def post(self, path: str, body: Any, *, model=MODEL, headers=None, patience=LATEST):
        """A client that waits for so long at most; its status is then 0."""
        began, first, text = self.time, 0.0, b""
        limit = aiohttp.ClientTimeout(total=patience)
        url = f"http://127.0.0.1:{self.port}/m/{model}{path}"
        status, node, route = 0, "", ""
        try:
            async with self._client.post(url, json=body, headers=headers, timeout=limit) as answer:
                node = answer.headers.get("x-fleet-node", "")
                route = answer.headers.get("x-fleet-route", "")
                async for chunk in answer.content.iter_any():
                    first = first or self.time - began
                    text += chunk
                status = answer.status
        except (aiohttp.ClientError, TimeoutError) as error:
            text += f"\n{type(error).__name__}".encode()
        return Got(status, node, route, text.decode(), first, self.time - began)

    async def many(self, count: int, at_once: int, words="hello", **body: Any) -> list[Got]:
        """Every client asks its next when it has its last."""
        left, got = iter(range(count)), []

        async def client() -> None:
            for number in left:
                got.append(await self.chat(said(f"{words} {number}"), **body))

        await asyncio.gather(*(client() for _ in range(at_once)))
        return got

    async def status(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.port}/relay/status"
        async with self._client.get(url) as answer:
            return await answer.json()

    async def until(self, fact) -> None:
        """Wait until this is so of the nodes, as the relay sees them."""
        end = self.time + LATEST
        while not fact((await self.status())["nodes"]):
            assert self.time < end, (await self.status())["nodes"]
            await asyncio.sleep(0.1)
