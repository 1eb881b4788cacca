"""A FIFO that wakes the supervisor of this home: every commit to the store rings it."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Bell:
    """Wakes the supervisor. Ringing never waits and never fails, even if none listens."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader: int | None = None
        self._open = threading.RLock()  # held while it is written to, also by a signal handler

    @property
    def listening(self) -> int | None:
        """Return the file descriptor to wait on, in the one process that listens."""
        return self._reader

    def listen(self) -> None:
        with suppress(FileExistsError):
            os.mkfifo(self.path, 0o600)
        # Opened for writing, too: a FIFO without writers is always ready, at its end.
        self._reader = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def ring(self) -> None:
        if self._reader is not None:
            return  # the supervisor itself need not be woken
        with suppress(OSError):
            fd = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(fd, b"!")
            finally:
                os.close(fd)

    def ring_self(self) -> None:
        """Ring from another thread of the process that listens."""
        with self._open, suppress(OSError):
            if self._reader is not None:
                os.write(self._reader, b"!")

    def wait(self, timeout: float) -> bool:
        assert self._reader is not None
        poll = select.poll()  # `select` takes no descriptor above 1023
        poll.register(self._reader, select.POLLIN)
        ready = poll.poll(timeout * 1000)
        if ready:
            self.drain()
        return bool(ready)

    def drain(self) -> None:
        assert self._reader is not None
        with suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass

    def close(self) -> None:
        with self._open:
            if self._reader is not None:
                os.close(self._reader)
                self._reader = None
