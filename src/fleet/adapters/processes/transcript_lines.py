"""Where the lines of a transcript begin, so that any of 50,000 is read at once."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from typing import IO, TYPE_CHECKING

from fleet.base.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STEP = 256  # of so many lines the first one's place is kept
CHUNK = 1 << 20
LONGEST_LINE = 1 << 20  # bytes of one line; the rest of it is left out
PAGE_BYTES = 4 << 20  # of the lines that are read at once
KEPT = 64  # transcripts whose lines are known


class TranscriptLines:
    """Where the lines of one file begin. It only grows; what was added is read at the next call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._inode = 0
        self._starts, self._lines, self._size = [0], 0, 0  # up to the end of the last whole line

    def count(self, *, final: bool) -> int:
        """How many there are; `final`: also what comes after the last line break."""
        try:
            with open_regular(self._path) as file, self._lock:
                self._look(file)
                return self._lines + (final and os.fstat(file.fileno()).st_size > self._size)
        except FileNotFoundError:
            return 0

    def read(self, first: int, count: int, *, last: bool) -> tuple[int, tuple[str, ...]]:
        """The lines from `first`, which counts from 0, and the number of the first one of them.

        Of too many bytes there are only the first lines, or with `last` the last ones.
        """
        try:
            with open_regular(self._path) as file:
                with self._lock:
                    self._look(file)
                    block = min(first // STEP, len(self._starts) - 1)
                    file.seek(self._starts[block])
                for _ in range(first - block * STEP):
                    file.readline()
                lines = _bounded(_each(file, count), last=last)
        except FileNotFoundError:
            return first, ()
        skipped = lines[0] if last else 0
        return first + skipped, tuple(line.decode("utf-8", "replace") for line in lines[1])

    def _look(self, file: IO[bytes]) -> None:
        inode = os.fstat(file.fileno()).st_ino
        if inode != self._inode:
            self._inode, self._starts, self._lines, self._size = inode, [0], 0, 0
        file.seek(self._size)
        base = self._size
        while data := file.read(CHUNK):
            at = -1
            while (at := data.find(b"\n", at + 1)) >= 0:
                self._lines += 1
                self._size = base + at + 1
                if self._lines % STEP == 0:
                    self._starts.append(self._size)
            base += len(data)


class KnownTranscripts:
    """The line numbers of the transcripts that were read last."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, TranscriptLines] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, path: Path) -> TranscriptLines:
        with self._lock:
            lines = self._known.pop(path, None) or TranscriptLines(path)
            self._known[path] = lines
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
            return lines


def _each(file: IO[bytes], count: int) -> Iterator[bytes]:
    for _ in range(count):
        line = file.readline(LONGEST_LINE)
        if not line:
            return
        if not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
        yield line.removesuffix(b"\n")


def _bounded(lines: Iterator[bytes], *, last: bool) -> tuple[int, list[bytes]]:
    """How many were left out at the beginning, and those that are kept: at least one."""
    kept: deque[bytes] = deque()
    size = left_out = 0
    for line in lines:
        size += len(line)
        if size > PAGE_BYTES and kept and not last:
            break
        kept.append(line)
        while size > PAGE_BYTES and len(kept) > 1:
            size -= len(kept.popleft())
            left_out += 1
    return left_out, list(kept)
