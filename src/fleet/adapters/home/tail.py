"""Read a file that is appended to: its lines so far, then new ones, across rotations."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import count
from typing import IO, TYPE_CHECKING

from fleet.base.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOOK_SECONDS = 0.2  # seconds between two looks
LONGEST_LINE = 1 << 20  # bytes of a line; a longer one comes in pieces


class Tail:
    """Follows a file: `past`, then `follow`, give each line exactly once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _opened(path)
        self._half = b""

    def past(self) -> Iterator[bytes]:
        """All lines so far, those in rotated files first. Half a line is left for later."""
        current = os.fstat(self._file.fileno()) if self._file else None
        for older in predecessors(self._path):
            with suppress(FileNotFoundError), open_regular(older) as file:
                stat = os.fstat(file.fileno())
                if current is None or (stat.st_ino, stat.st_dev) != (
                    current.st_ino,
                    current.st_dev,
                ):
                    yield from (line.rstrip(b"\r\n") for line in file)
        yield from self._read()

    def skip(self) -> None:
        """Skip the lines that exist already."""
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def follow(self) -> Iterator[bytes]:
        """New lines, for ever. Waits for a file that does not exist."""
        while True:
            yield from self.new()
            time.sleep(LOOK_SECONDS)

    def new(self) -> Iterator[bytes]:
        """Return the lines that were added since the last call.

        Read a file that was replaced to its end first, and one that became shorter from its start.
        """
        yield from self._read()
        while self._file is None or self._is_over():
            if self._half:
                yield self._half
            self.close()
            self._file, self._half = _opened(self._path), b""
            if self._file is None:
                return
            yield from self._read()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self) -> Iterator[bytes]:
        while self._file is not None and (new := self._file.read(LONGEST_LINE)):
            *ended, self._half = (self._half + new).split(b"\n")
            yield from (line.rstrip(b"\r") for line in ended)
            if len(self._half) >= LONGEST_LINE:
                yield self._half
                self._half = b""

    def _is_over(self) -> bool:
        """Whether the path names another file, or the file became shorter."""
        assert self._file is not None
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False  # between the two halves of a rotation
        opened, read = os.fstat(self._file.fileno()), self._file.tell()
        if opened.st_size < read:
            return True
        return (named.st_ino, named.st_dev) != (
            opened.st_ino,
            opened.st_dev,
        ) and opened.st_size == read


def predecessors(path: Path) -> list[Path]:
    """`NAME.2`, `NAME.1`: the oldest first."""
    paths: list[Path] = []
    for number in count(1):
        older = path.with_name(f"{path.name}.{number}")
        if not older.is_file():
            break
        paths.insert(0, older)
    return paths


def _opened(path: Path) -> IO[bytes] | None:
    try:
        return open_regular(path)
    except FileNotFoundError:
        return None
