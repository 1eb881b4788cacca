"""The relay's connections to nodes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from fleet.adapters.nodes.key import key_of
from fleet.adapters.relay.wires import error_of
from fleet.domain.errors import Unavailable
from fleet.domain.nodes.kinds import kind_of

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

    from fleet.adapters.relay.plan import RelaySettings
    from fleet.domain.fleet import Node, Serving

HEADERS = {"accept-encoding": "identity", "user-agent": "fleet-relay"}
IDLE = 30.0


class NotANode(aiohttp.ClientError):
    """A program that is not this kind of node answers at the node's address."""


class Connections:
    """`kept` reuses connections, `fresh` never does."""

    def __init__(self, settings: RelaySettings, resolver: AbstractResolver | None = None) -> None:
        self.settings = settings
        kept = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE, resolver=resolver)
        self.kept = _session(kept)
        self.fresh = _session(aiohttp.TCPConnector(limit=0, force_close=True, resolver=resolver))

    async def close(self) -> None:
        await self.kept.close()
        await self.fresh.close()

    def patience(self, silence: float) -> aiohttp.ClientTimeout:
        """A long reply may take any time; a node may be silent for `silence` seconds.

        To find its address is a part of connecting, however slow the resolver is.
        """
        limit = self.settings.connect
        return aiohttp.ClientTimeout(connect=limit, sock_connect=limit, sock_read=silence)

    def headers(self, node: Node) -> dict[str, str]:
        """Return the headers for a node; raise `Unavailable` when its key is missing."""
        key = key_of(node.api_key, os.environ, Path(self.settings.base or "."))
        headers = {"content-type": "application/json"}
        return headers | (kind_of(node.kind).headers(key) if key else {})

    async def get(self, node: Node, path: str) -> tuple[int, object]:
        """The status, and the JSON or None. Raise `NotANode` when another program answers."""
        status, body = await self._page(node, path)
        try:
            return status, json.loads(body)
        except (ValueError, RecursionError):
            return status, None

    async def text(self, node: Node, path: str) -> str:
        """Return the text of a page; empty when the node has no such page."""
        status, body = await self._page(node, path)
        return body.decode("utf-8", "replace") if status == 200 else ""

    async def _page(self, node: Node, path: str) -> tuple[int, bytes]:
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
            return answer.status, await answer.read()

    async def load(self, serving: Serving, patience: float) -> str:
        """Load a model into an Ollama's memory; why not, in words, or nothing."""
        body = {
            "model": serving.upstream, "keep_alive": -1, "stream": False,
            "options": {"num_ctx": serving.context},
        }  # fmt: skip
        url = serving.node.endpoint.rstrip("/").removesuffix("/v1") + "/api/generate"
        try:
            async with self.fresh.post(
                url, json=body, headers=self.headers(serving.node),
                timeout=self.patience(patience), allow_redirects=False,
            ) as answer:  # fmt: skip
                words = error_of(await answer.read())
                good = answer.status == 200
                return "" if good else f"it answered with status {answer.status}: {words}"
        except TimeoutError:
            return f"it did not load within {patience:g} s"
        except (aiohttp.ClientError, OSError, Unavailable) as error:
            return why_of(error)


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=connector, headers=HEADERS, trust_env=False)


def elsewhere(answer: aiohttp.ClientResponse) -> str:
    """Say why a redirect or an error fails: the relay follows no redirect out of its plan."""
    to = answer.headers.get("location", "")[:200]
    return f"it redirects to {to}" if to else f"it answers with status {answer.status}"


def why_of(error: BaseException) -> str:
    """Say why a connection failed, where possible as the operating system does."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "nothing answers at its address"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection broke"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"there is no host named {error.host}"
    number = getattr(getattr(error, "os_error", None) or error, "errno", None)
    return os.strerror(number).lower() if number else str(error) or type(error).__name__
