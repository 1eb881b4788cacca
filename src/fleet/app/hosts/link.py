"""The link of this host's supervisor to the server: it dials out, and answers for its runs."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fleet.domain.access import Actor, Role
from fleet.domain.errors import FleetError
from fleet.domain.record_json import dumps, reader
from fleet.operations.catalogue import operations, perform

if TYPE_CHECKING:
    from fleet.app import App
    from fleet.operations.catalogue import Operation

TOKEN = "server.token"  # noqa: S105  # nosec B105  # the name of a file in the home
RETRY_SECONDS = 5.0
HEARTBEAT = 20.0
PART = 64 << 10  # characters of an answer in one frame, of which each may take 12 bytes


class HostLink:
    """A thread that stays connected. It answers only reads, each as the actor who asked the server."""

    def __init__(self, app: App, url: str) -> None:
        self._app, self._url = app, url.rstrip("/")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._known: dict[str, Operation] = {}
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(RETRY_SECONDS)

    def _run(self) -> None:
        self._known = {each.name: each for each in operations() if each.is_read}
        with suppress(asyncio.CancelledError):
            asyncio.run(self._stay())

    async def _stay(self) -> None:
        import aiohttp

        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        while True:
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                async with aiohttp.ClientSession() as session:
                    await self._talk(session)
            await asyncio.sleep(RETRY_SECONDS)

    async def _talk(self, session: Any) -> None:
        home = self._app.home
        token = (home.path / TOKEN).read_text("utf-8").strip()
        url = f"{self._url}/ws/host"
        async with session.ws_connect(url, heartbeat=HEARTBEAT, max_msg_size=1 << 20) as socket:
            auth = {"type": "auth", "token": token, "host": home.host_id()}
            await socket.send_str(json.dumps(auth))
            answering: set[asyncio.Task[None]] = set()
            async for message in socket:
                task = asyncio.create_task(self._answer(socket, json.loads(message.data)))
                answering.add(task)
                task.add_done_callback(answering.discard)

    async def _answer(self, socket: Any, frame: dict[str, Any]) -> None:
        text = await asyncio.to_thread(self._perform, frame)
        parts = [text[at : at + PART] for at in range(0, len(text), PART)]
        for part in parts:
            last = part is parts[-1]
            await socket.send_str(json.dumps({"id": frame["id"], "part": part, "last": last}))

    def _perform(self, frame: dict[str, Any]) -> str:
        own = replace(self._app, listening=False)
        try:
            operation = self._known[frame["operation"]]
            request = reader(operation.request, strict=True)(frame["request"])
            who = frame["actor"]
            actor = Actor(who["name"], Role(who["role"]), who["team"], who["run"], remote=True)
            return dumps({"data": perform(own.context._replace(actor=actor), request)})
        except FleetError as error:
            words = {"message": error.message, "fix": error.fix, "code": error.code}
            return dumps({"error": {**words, "status": error.http_status}})
        except Exception as error:  # noqa: BLE001  # the server must not wait for it
            bug = f"{type(error).__name__}: {error}"
            return dumps({"error": {"message": bug, "fix": "", "code": "bug", "status": 503}})
        finally:
            own.store.close()
