"""Requests that are no work for a model, so they need no slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

from fleet.adapters.relay.request import address, beside, encode, in_pieces
from fleet.adapters.relay.wires import COUNT
from fleet.domain.errors import Unavailable
from fleet.domain.nodes.kinds import kind_of

if TYPE_CHECKING:
    from fleet.adapters.relay.connections import Connections
    from fleet.adapters.relay.request import ModelRequest
    from fleet.adapters.relay.world import RelayWorld

REQUEST_SECONDS = 10.0


class SmallRequests:
    def __init__(self, world: RelayWorld, connections: Connections) -> None:
        self._world, self._connections = world, connections

    async def answer(self, model_request: ModelRequest, request: web.Request) -> web.Response:
        model, path, wire = model_request.model, model_request.path, model_request.wire
        body = model_request.body
        if path == "/v1/models":
            return web.json_response({"object": "list", "data": [{"id": model, "object": "model"}]})
        for serving in self._world.candidates(model_request, set()):
            if path == COUNT and not kind_of(serving.node.kind).counts_tokens:
                continue
            sent = body | ({"model": serving.upstream} if "model" in body or path == COUNT else {})
            if "name" in body:
                sent["name"] = serving.upstream
            data = await beside(model_request.size, encode, sent)
            limit = aiohttp.ClientTimeout(
                total=REQUEST_SECONDS, connect=self._connections.settings.connect
            )
            try:
                async with self._connections.kept.request(
                    request.method,
                    address(serving, path),
                    data=in_pieces(data) if request.method == "POST" else None,
                    headers=model_request.headers | self._connections.headers(serving.node),
                    timeout=limit,
                    allow_redirects=False,
                ) as answer:
                    if 300 <= answer.status < 400:
                        continue
                    return web.Response(
                        status=answer.status,
                        body=await answer.read(),
                        headers={"content-type": answer.headers.get("content-type", "")},
                    )
            except (aiohttp.ClientError, TimeoutError, OSError, Unavailable):
                continue
        if path == COUNT:
            return web.json_response({"input_tokens": max(1, model_request.prompt_tokens)})
        why = self._world.why_not(model_request).words
        return web.json_response(wire.error(f"No node can answer: {why}.", 503), status=503)
