"""A bare forwarder: what any proxy in Python costs, so that the relay's own cost can be seen.

`python bench/_forwarder.py NODE READY` passes each request on, and its reply piece by piece; it
reads nothing, chooses nothing and remembers nothing. READY is given its address.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import aiohttp
from aiohttp import web


async def serve(node: str, ready: Path) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            body = await request.read()
            headers = {"content-type": "application/json"}
            async with session.post(node + request.path, data=body, headers=headers) as answer:
                reply = web.StreamResponse(status=answer.status)
                reply.content_type = answer.content_type
                await reply.prepare(request)
                async for piece in answer.content.iter_any():
                    await reply.write(piece)
                await reply.write_eof()
                return reply

        app = web.Application(client_max_size=256 << 20)
        app.router.add_post("/{rest:.+}", forward)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await asyncio.to_thread(ready.write_text, address)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
