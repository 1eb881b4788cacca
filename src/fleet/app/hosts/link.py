"""The link of this host's supervisor to the server: it dials out, and answers for its runs."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fleet.adapters.processes.pty import Pty
from fleet.app.hosts.settle import TOKEN
from fleet.base.files import write_atomically
from fleet.domain.access import Actor, Role
from fleet.domain.errors import FleetError, Refused
from fleet.domain.record_json import dumps, reader
from fleet.operations.catalogue import operations, perform
from fleet.operations.tasks.transcript import AttachRun

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from fleet.app.app import App
    from fleet.operations.catalogue import Operation

RETRY_SECONDS = 5.0
HEARTBEAT = 20.0
PART = 64 << 10  # characters of an answer in one frame, of which each may take 12 bytes
MAX_SEATS = 16  # people at terminals of this host
WINDOW = 256 << 10  # bytes of a terminal that the server has not read yet
MOST_TYPED = 1024  # frames that wait for a terminal to take them
NUMBER = struct.Struct(">I")  # before the bytes of a terminal: whose they are


class HostLink:
    """A thread that stays connected. It answers reads, each as the actor who asked the server.

    It also opens terminals of runs of this host to those who may sit there. `warn`: with why the
    server refuses it.
    """

    def __init__(self, app: App, url: str, warn: Callable[[str], None] = lambda _: None) -> None:
        self._app, self._url, self._warn = app, url.rstrip("/"), warn
        self._warned = ""
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
            try:
                async with aiohttp.ClientSession() as session:
                    await self._talk(session)
            except (aiohttp.ClientError, OSError, TimeoutError):
                pass  # nobody answers there now
            except Exception as error:  # noqa: BLE001  # a server of another release says other things
                self._warn_once(f"The link to the server at {self._url} broke: {error!r}")
            await asyncio.sleep(RETRY_SECONDS)

    async def _talk(self, session: Any) -> None:
        home = self._app.home
        token = (home.path / TOKEN).read_text("utf-8").strip()
        url = f"{self._url}/ws/host"
        async with session.ws_connect(url, heartbeat=HEARTBEAT, max_msg_size=1 << 20) as socket:
            auth = {"type": "auth", "token": token, "host": home.host_id()}
            await socket.send_str(json.dumps(auth))
            talk = LinkTalk(socket, self)
            try:
                async for message in socket:
                    talk.hear(message.data)
            finally:
                await talk.end()

    def note(self, frame: dict[str, Any]) -> None:
        """What the server says about the link itself."""
        if frame["type"] == "token":
            write_atomically(self._app.home.path / TOKEN, frame["token"].encode(), mode=0o600)
        elif frame["type"] == "error":
            self._warn_once(f"The server at {self._url} refuses the link: {frame['message']}")

    def _warn_once(self, text: str) -> None:
        if text != self._warned:
            self._warned = text
            self._warn(text)

    def answer(self, frame: dict[str, Any]) -> str:
        """Answer a read, in a thread; an error is an answer, too."""
        own = self._app.another(listening=False)
        try:
            operation = self._known[frame["operation"]]
            request = reader(operation.request, strict=True)(frame["request"])
            return dumps({"data": perform(own.context._replace(actor=_actor(frame)), request)})
        except Exception as error:  # noqa: BLE001  # the server must not wait for it
            return error_text(error)
        finally:
            own.store.close()

    def attach_argv(self, frame: dict[str, Any]) -> list[str]:
        """The command that attaches, found in a thread; raise unless that actor may sit there."""
        own = self._app.another(listening=False)
        try:
            context = own.context._replace(actor=_actor(frame))
            return list(perform(context, AttachRun(frame["seat"])).argv)
        finally:
            own.store.close()


class LinkTalk:
    """One connection: the requests being answered, and the seats at terminals."""

    def __init__(self, socket: Any, link: HostLink) -> None:
        self._socket, self._link = socket, link
        self._doing: set[asyncio.Task[None]] = set()
        self._seats: dict[int, HostSeat] = {}

    def hear(self, data: str | bytes) -> None:
        if isinstance(data, bytes):
            seat = self._seats.get(NUMBER.unpack_from(data)[0])
            if seat is not None:
                seat.typed(data[NUMBER.size :])
            return
        frame = json.loads(data)
        if "operation" in frame:
            self._do(self._answer(frame))
        elif "seat" in frame:
            self._do(self._sit(frame))
        elif seat := self._seats.get(frame.get("id", 0)):
            seat.hear(frame)
        elif "type" in frame:
            self._link.note(frame)

    def _do(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    async def end(self) -> None:
        for task in self._doing:
            task.cancel()
        await asyncio.gather(*self._doing, return_exceptions=True)

    async def _answer(self, frame: dict[str, Any]) -> None:
        await self.say(frame["id"], await asyncio.to_thread(self._link.answer, frame))

    async def say(self, number: int, text: str) -> None:
        parts = [text[at : at + PART] for at in range(0, len(text), PART)]
        for at, part in enumerate(parts, 1):
            last = at == len(parts)
            await self._socket.send_str(json.dumps({"id": number, "part": part, "last": last}))

    async def _sit(self, frame: dict[str, Any]) -> None:
        number = frame["id"]
        seat = self._seats[number] = HostSeat(number, self._socket)
        try:
            _check_room(len(self._seats))
            argv = await asyncio.to_thread(self._link.attach_argv, frame)
            pty = Pty(argv, tuple(frame["size"]))
        except Exception as error:  # noqa: BLE001  # the server must not wait for it
            await self.say(number, error_text(error))
        else:
            await self.say(number, '{"data": {}}')
            await seat.sit(pty)
        finally:
            del self._seats[number]


class HostSeat:
    """A seat at a terminal of this host, read no faster than the server takes what it prints."""

    def __init__(self, number: int, socket: Any) -> None:
        self._number, self._socket = number, socket
        self._inbox: asyncio.Queue[bytes | tuple[int, int]] = asyncio.Queue(MOST_TYPED)
        self._ahead, self._room, self._gone = 0, asyncio.Event(), asyncio.Event()
        self._room.set()

    def typed(self, data: bytes) -> None:
        self._put(data)

    def hear(self, frame: dict[str, Any]) -> None:
        if "read" in frame:
            self._ahead -= int(frame["read"])
            if self._ahead < WINDOW:
                self._room.set()
        elif "size" in frame:
            self._put(tuple(frame["size"]))
        elif "leave" in frame:
            self._gone.set()

    def _put(self, what: bytes | tuple[int, int]) -> None:
        with suppress(asyncio.QueueFull):  # its program takes nothing: what is typed is lost there
            self._inbox.put_nowait(what)

    async def sit(self, pty: Pty) -> None:
        """Until the terminal ends, or who sat there leaves."""
        work: tuple[Coroutine[Any, Any, object], ...] = (
            self._show(pty), self._type(pty), self._gone.wait(),
        )  # fmt: skip
        parts = [asyncio.create_task(part) for part in work]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            await pty.leave()
        await self._socket.send_str(json.dumps({"id": self._number, "left": True}))

    async def _show(self, pty: Pty) -> None:
        while data := await pty.read():
            await self._socket.send_bytes(NUMBER.pack(self._number) + data)
            self._ahead += len(data)
            if self._ahead >= WINDOW:
                self._room.clear()
                await self._room.wait()

    async def _type(self, pty: Pty) -> None:
        while True:
            what = await self._inbox.get()
            if isinstance(what, bytes):
                await pty.write(what)
            else:
                await pty.resize(what)


def _check_room(seats: int) -> None:
    if seats > MAX_SEATS:
        raise Refused(
            f"{MAX_SEATS} terminals of this host are open elsewhere, which is the limit.",
            fix="Close one of them.",
        )


def error_text(error: Exception) -> str:
    if not isinstance(error, FleetError):
        bug = f"{type(error).__name__}: {error}"
        return dumps({"error": {"message": bug, "fix": "", "code": "bug", "status": 503}})
    words = {"message": error.message, "fix": error.fix, "code": error.code}
    return dumps({"error": {**words, "status": error.http_status}})


def _actor(frame: dict[str, Any]) -> Actor:
    who = frame["actor"]
    return Actor(who["name"], Role(who["role"]), who["team"], who["run"], remote=True)
