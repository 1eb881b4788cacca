"""The link of a host to a server that says what the host does not understand."""

from __future__ import annotations

import asyncio

from aiohttp import web

from fleet.app.app import App
from fleet.app.hosts import link as links
from fleet.app.hosts.link import HostLink
from fleet.app.hosts.settle import TOKEN


async def greetings(app: App, said: list[str], warned: list[str]) -> list[str]:
    """How the host greets a server that says one of these each time and goes on listening."""
    greeted: asyncio.Queue = asyncio.Queue()
    left = iter(said)

    async def hear(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await greeted.put((await socket.receive_json())["type"])
        if (words := next(left, None)) is not None:
            await socket.send_str(words)
        await socket.receive()
        return socket

    serving = web.Application()
    serving.router.add_get("/ws/host", hear)
    runner = web.AppRunner(serving)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    link = HostLink(app, f"http://127.0.0.1:{runner.addresses[0][1]}", warned.append)
    link.begin()
    try:
        return [await asyncio.wait_for(greeted.get(), 30) for _ in range(len(said) + 1)]
    finally:
        await asyncio.to_thread(link.end)
        await runner.cleanup()


def test_a_link_that_broke_at_what_the_server_said_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(links, "RETRY_SECONDS", 0.05)
    app = App(tmp_path, {"FLEET_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)})
    app.home.ensure()
    (app.home.path / TOKEN).write_text("x")
    warned: list[str] = []
    said = ["no JSON", "no JSON", "[]", '{"type": "error"}', "x" * (2 << 20)]
    assert asyncio.run(greetings(app, said, warned)) == ["auth"] * 6
    assert len(warned) == len(set(warned)) == 4
    assert all("broke" in text for text in warned)
