"""Open a terminal of another machine, through the server's `/ws/terminal`."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import termios
import tty
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.app.server_address import Remote

CHUNK = 64 << 10
HEARTBEAT = 20.0


def sit_down(remote: Remote, run: str) -> None:
    """Show the terminal until the person detaches with Ctrl-Q. Raise when it cannot be opened."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused(
            "Standard input is not a terminal.", fix="Run it in a terminal.", code="no_terminal"
        )
    asyncio.run(_sit(remote, run))


async def _sit(remote: Remote, run: str) -> None:
    import aiohttp

    try:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{remote.url}/ws/terminal", heartbeat=HEARTBEAT) as socket,
        ):
            auth = {"type": "auth", "token": remote.token, "run": run, **_size()}
            await socket.send_str(json.dumps(auth))
            first = await socket.receive()
            if first.type is not aiohttp.WSMsgType.TEXT:
                raise Unavailable(f"The server at {remote.url} closed the connection.")
            frame = json.loads(first.data)
            if frame.get("type") != "seated":
                raise Refused(
                    frame.get("message", "The server opened no terminal."),
                    code=frame.get("code") or "",
                )
            with _raw(sys.stdin.fileno()):
                await _talk(socket)
    except (aiohttp.ClientError, OSError) as error:
        raise Unavailable(
            f"The server at {remote.url} does not answer: {error}", fix="fleet serve --background"
        ) from error


async def _talk(socket: Any) -> None:
    loop, keys = asyncio.get_running_loop(), sys.stdin.fileno()
    typed: asyncio.Queue[bytes | None] = asyncio.Queue()
    loop.add_reader(keys, lambda: typed.put_nowait(os.read(keys, CHUNK)))
    loop.add_signal_handler(signal.SIGWINCH, lambda: typed.put_nowait(None))
    sending = asyncio.create_task(_send(socket, typed))
    try:
        async for message in socket:
            if isinstance(message.data, bytes):
                await asyncio.to_thread(_show, message.data)
    finally:
        loop.remove_reader(keys)
        loop.remove_signal_handler(signal.SIGWINCH)
        sending.cancel()


async def _send(socket: Any, typed: asyncio.Queue[bytes | None]) -> None:
    """Send what is typed. None: the terminal was resized. Empty: the input has ended."""
    while (data := await typed.get()) != b"":
        if data is None:
            await socket.send_str(json.dumps({"type": "size", **_size()}))
        else:
            await socket.send_bytes(data)
    await socket.close()


def _show(data: bytes) -> None:
    while data:
        data = data[os.write(sys.stdout.fileno(), data) :]


def _size() -> dict[str, int]:
    columns, rows = shutil.get_terminal_size()
    return {"rows": rows, "columns": columns}


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Put the terminal into raw mode, so that every key is sent; restore it afterwards."""
    before = termios.tcgetattr(terminal)
    tty.setraw(terminal)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        os.write(sys.stdout.fileno(), b"\x1b[?1049l\x1b[?25h\x1b[0m\r\n")
