"""What is asked besides work for a model, and so needs no slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from fleet.adapters.relay.request import address, asked
from fleet.adapters.relay.wires import COUNT, Wire
from fleet.domain.errors import Unavailable
from fleet.domain.nodes.kinds import kind_of

if TYPE_CHECKING:
    from fleet.adapters.relay.connections import Outside
    from fleet.adapters.relay.nodes import World

REQUEST_SECONDS = 10.0


class Aside:
    def __init__(self, world: World, outside: Outside) -> None:
        self._world, self._outside = world, outside

    async def answer(
        self, model: str, path: str, wire: Wire, body: dict[str, Any], request: web.Request
    ) -> web.Response:
        held = asked(model, path, wire, body, request.headers)
        if path == "/v1/models":
            return web.json_response({"object": "list", "data": [{"id": model, "object": "model"}]})
        for serving in self._world.candidates(held, set()):
            if path == COUNT and not kind_of(serving.node.kind).counts_tokens:
                continue
            told = body | ({"model": serving.upstream} if "model" in body or path == COUNT else {})
            if "name" in body:
                told["name"] = serving.upstream
            limit = aiohttp.ClientTimeout(
                total=REQUEST_SECONDS, sock_connect=self._outside.settings.connect
            )
            try:
                async with self._outside.kept.request(
                    request.method,
                    address(serving, path),
                    json=told if request.method == "POST" else None,
                    headers=held.headers | self._outside.headers(serving.node),
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
            return web.json_response({"input_tokens": max(1, held.prompt_tokens)})
        why, _ = self._world.why_not(held)
        return web.json_response(wire.error(f"No node can answer: {why}.", 503), status=503)
