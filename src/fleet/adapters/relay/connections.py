"""The relay's connections to nodes, and its probes of them, which never load a model."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from fleet.adapters.nodes.key import key_of
from fleet.base.loose_json import integer, mappings
from fleet.domain.errors import Unavailable
from fleet.domain.nodes import breaker as breakers
from fleet.domain.nodes.breaker import Result
from fleet.domain.nodes.kinds import kind_of

if TYPE_CHECKING:
    from fleet.adapters.relay.line import Line
    from fleet.adapters.relay.nodes import NodeState, World
    from fleet.adapters.relay.plan import Settings
    from fleet.domain.fleet import Node

ROUND = 0.2  # seconds between rounds of the watch
STOCK = 15.0  # seconds between looks at the loaded models
MISSES = 2  # looks in a row without an answer after which the node is down
HEADERS = {"accept-encoding": "identity", "user-agent": "fleet-relay"}
IDLE = 30.0


class NotANode(aiohttp.ClientError):
    """Another program answers at the node's address."""


class Connections:
    """`kept` reuses connections, `fresh` never does."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.kept = _session(aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE))
        self.fresh = _session(aiohttp.TCPConnector(limit=0, force_close=True))

    async def close(self) -> None:
        await self.kept.close()
        await self.fresh.close()

    def patience(self, silence: float) -> aiohttp.ClientTimeout:
        """A long reply may take any time; a node may be silent for `silence` seconds."""
        return aiohttp.ClientTimeout(sock_connect=self.settings.connect, sock_read=silence)

    def headers(self, node: Node) -> dict[str, str]:
        """Raise `Unavailable` when the key that the node needs is missing."""
        key = key_of(node.api_key, os.environ, Path(self.settings.base or "."))
        headers = {"content-type": "application/json"}
        return headers | (kind_of(node.kind).headers(key) if key else {})

    async def get(self, node: Node, path: str) -> tuple[int, object]:
        """The status, and the JSON or None. Raise `NotANode` when another program answers."""
        url = node.endpoint.rstrip("/").removesuffix("/v1") + path
        limit = aiohttp.ClientTimeout(
            total=2 * self.settings.connect, sock_connect=self.settings.connect
        )
        async with self.fresh.get(
            url, headers=self.headers(node), timeout=limit, allow_redirects=False
        ) as answer:
            if 300 <= answer.status < 400:
                raise NotANode(elsewhere(answer))
            if answer.status == 200 and answer.content_type == "text/html":
                raise NotANode("it answers with a web page")
            body = await answer.read()
            try:
                return answer.status, json.loads(body)
            except (ValueError, RecursionError):
                return answer.status, None


class Watch:
    """Probes nodes that are down, nodes that are silent at work, and the loaded models."""

    def __init__(self, world: World, line: Line, connections: Connections) -> None:
        self._world, self._line, self._connections = world, line, connections
        self._looks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        while True:
            now = time.monotonic()
            for state in self._world.nodes.values():
                if not state.looking and self._due(state, now):
                    state.looking = True
                    look = asyncio.create_task(self._look(state))
                    self._looks.add(look)
                    look.add_done_callback(self._looks.discard)
            await asyncio.sleep(ROUND)

    def _due(self, state: NodeState, now: float) -> bool:
        if not state.up:
            return breakers.probe_due(state.breaker, now)
        if not state.looked:
            return True
        pause = self._connections.settings.look
        silent = any(now - work.heard > pause for work in state.work)
        stock = kind_of(state.node.kind).is_ollama and now - state.looked > STOCK
        return stock or (silent and now - state.looked > pause)

    async def _look(self, state: NodeState) -> None:
        try:
            why, sure = await self._finding(state)
        finally:
            state.looking = False
            state.looked = time.monotonic()
        now = time.monotonic()
        if not state.up:
            state.breaker = breakers.probed(state.breaker, up=not why, now=now, why=why)
            self._line.move()
            return
        state.misses = state.misses + 1 if why else 0
        if why and (sure or state.misses >= MISSES):
            state.note(Result.UNREACHABLE, why)
            for work in list(state.work):
                if now - work.heard > self._connections.settings.connect:
                    work.abort(now)
            self._line.move()

    async def _finding(self, state: NodeState) -> tuple[str, bool]:
        """Why the node is down, or nothing; and whether that is certain."""
        node = state.node
        try:
            status, _ = await self._connections.get(node, kind_of(node.kind).quick)
            if status >= 500:
                return f"it answers with status {status}", False
            if kind_of(node.kind).is_ollama:
                await self._stock(state)
        except (
            aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, NotANode
        ) as error:  # fmt: skip
            return why_of(error), True
        except Unavailable as error:
            return str(error), False
        except TimeoutError:
            return "it accepts connections and says nothing", False
        except (aiohttp.ClientError, OSError) as error:
            return why_of(error), False
        return "", True

    async def _stock(self, state: NodeState) -> None:
        status, reply = await self._connections.get(state.node, "/api/ps")
        if status == 200 and isinstance(reply, dict) and isinstance(reply.get("models"), list):
            state.resident = {
                str(model.get("model") or model.get("name")): integer(model.get("context_length"))
                for model in mappings(reply["models"])
            }


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=connector, headers=HEADERS, trust_env=False)


def elsewhere(answer: aiohttp.ClientResponse) -> str:
    """Why such an answer fails: the relay follows no redirect to an address outside the plan."""
    to = answer.headers.get("location", "")[:200]
    return f"it redirects to {to}" if to else f"it answers with status {answer.status}"


def why_of(error: BaseException) -> str:
    """In the words of the operating system, if it has any."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "nothing answers at its address"
    number = getattr(getattr(error, "os_error", None) or error, "errno", None)
    return os.strerror(number).lower() if number else str(error) or type(error).__name__
