"""A program in a terminal of its own, which somebody elsewhere looks at and types in."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import subprocess
import termios
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CHUNK = 64 << 10
GRACE = 2.0  # seconds for the program to end
INHERITED = ("PATH", "HOME", "LANG", "TMUX_TMPDIR")


class Pty:
    """`size`: rows and columns. Call it in an event loop."""

    def __init__(self, argv: Sequence[str], size: tuple[int, int]) -> None:
        self._reader: asyncio.StreamReader | None = None
        self._transport: asyncio.ReadTransport | None = None
        self._master, slave = os.openpty()
        try:
            _resize(self._master, size)
            env = {name: os.environ[name] for name in INHERITED if name in os.environ}
            self._client = subprocess.Popen(
                list(argv), stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                env={**env, "TERM": "xterm-256color"},
            )  # fmt: skip
        except BaseException:
            os.close(self._master)
            raise
        finally:
            os.close(slave)

    async def read(self) -> bytes:
        """What it prints; empty once it has ended."""
        if self._reader is None:
            self._reader = asyncio.StreamReader(limit=CHUNK)
            protocol = asyncio.StreamReaderProtocol(self._reader)
            pipe = os.fdopen(os.dup(self._master), "rb", 0)
            loop = asyncio.get_running_loop()
            self._transport, _ = await loop.connect_read_pipe(lambda: protocol, pipe)
        with suppress(OSError):  # so a pty tells that nobody is at its other end
            return await self._reader.read(CHUNK)
        return b""

    async def write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                await asyncio.sleep(0.01)

    async def resize(self, size: tuple[int, int]) -> None:
        _resize(self._master, size)
        with suppress(ProcessLookupError):
            self._client.send_signal(signal.SIGWINCH)

    async def leave(self) -> None:
        """End the program, and nothing that it is attached to."""
        if self._transport is not None:
            self._transport.close()
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            self._client.send_signal(signal.SIGHUP)
        try:
            self._client.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._client.kill()
            self._client.wait()
        os.close(self._master)


def _resize(terminal: int, size: tuple[int, int]) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
