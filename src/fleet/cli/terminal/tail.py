"""The end of a file, and what is added to it while a person looks."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BLOCK = 1 << 16
LOOK_SECONDS = 0.2  # seconds between two looks
LINGER = 0.5  # seconds in which the last lines come after the end


def last_lines(path: Path, count: int | None) -> bytes:
    """As many of its last lines, or all of it."""
    with path.open("rb") as file:
        file.seek(_start(file, count))
        return file.read()


def _start(file: BinaryIO, count: int | None) -> int:
    """Where the last `count` lines begin."""
    if count is None:
        return 0
    at = file.seek(0, os.SEEK_END)
    missing = count + 1  # the line breaks before them, and the last one
    if at:
        file.seek(at - 1)
        missing -= file.read(1) != b"\n"
    while at:
        size = min(BLOCK, at)
        at -= size
        file.seek(at)
        block = file.read(size)
        start = size
        while missing and (start := block.rfind(b"\n", 0, start)) >= 0:
            missing -= 1
        if not missing:
            return at + start + 1
    return 0


def follow(
    path: Callable[[], Path | None], count: int | None, going: Callable[[], bool]
) -> Iterator[str]:
    """The lines of the file that `path` names, as they come; then those of the one it names next.

    It ends when `going` is no longer so.
    """
    file, half = None, b""
    try:
        while True:
            last = not going()
            if last:
                time.sleep(LINGER)
            if file is None:
                file, count = _opened(path(), count), None
            if file is not None:
                *whole, half = (half + file.read()).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in whole)
                if not whole and _is_another(file, path()):
                    file.close()
                    file, half = None, b""
                    continue
            if last:
                break
            time.sleep(LOOK_SECONDS)
        if half:
            yield half.decode("utf-8", "replace")
    finally:
        if file is not None:
            file.close()


def _opened(path: Path | None, count: int | None) -> BinaryIO | None:
    if path is None:
        return None
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    file.seek(_start(file, count))
    return file


def _is_another(file: BinaryIO, path: Path | None) -> bool:
    """Whether the name now means another file: a new day's, or a new one because the old was full."""
    if path is None or not path.exists():
        return False
    return path.stat().st_ino != os.fstat(file.fileno()).st_ino
