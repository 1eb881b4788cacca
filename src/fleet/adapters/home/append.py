"""Append-only files: whole lines, one writer at a time, never longer than a limit.

A writer holds the file's lock. So half a line at the end comes from a process that died while
writing, and is cut off. A file is opened for each write, because hundreds of runs write at once,
and a file may have been removed meanwhile.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self, TypeAlias

from fleet.base.files import open_regular
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OLDER = ".1"  # the suffix of the previous file, which is full
LOCK_SECONDS = 0.25  # to wait for another writer, which needs microseconds
BLOCK = 1 << 16
_ADD = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CREAT | os.O_CLOEXEC

Stamp: TypeAlias = tuple[int, int]  # inode and length
UNKNOWN: Stamp = (0, -1)


class AppendLimits(NamedTuple):
    """The most bytes of a task's file, of a day's log, and of lines that wait for disk space."""

    file: int = 50_000_000
    day: int = 20_000_000
    waiting: int = 1 << 20


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock under which fleet changes this folder's files; make the folder if need be."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock(fd, folder)
        yield
    finally:
        os.close(fd)


def lock(fd: int, path: Path) -> None:
    """Lock a file, or raise `OSError` after a while, as a suspended writer may hold the lock."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        until = time.monotonic() + LOCK_SECONDS
    else:
        return
    while time.monotonic() < until:
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(0.002)
    raise OSError(errno.EBUSY, "another process writes there", str(path))


class LineFile:
    """One file, open for appending whole lines. A file with the stamp `last` needs no repair."""

    def __init__(self, path: Path, last: Stamp = UNKNOWN) -> None:
        self._path = path
        self.fd = _opened(path)
        try:
            lock(self.fd, path)
            stat = os.fstat(self.fd)
            self.stamp: Stamp = (stat.st_ino, stat.st_size)
            if self.stamp != last:
                self._heal()
        except BaseException:
            os.close(self.fd)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def _heal(self) -> None:
        inode, size = self.stamp
        if not size or os.pread(self.fd, 1, size - 1) == b"\n":
            return
        end = 0
        for start in range((size - 1) // BLOCK * BLOCK, -1, -BLOCK):
            offset = os.pread(self.fd, BLOCK, start).rfind(b"\n")
            if offset >= 0:
                end = start + offset + 1
                break
        os.ftruncate(self.fd, end)
        self.stamp = (inode, end)

    def add(self, data: bytes, *, most: int) -> None:
        """Append all of it or, raising `OSError`, nothing."""
        if self.stamp[1] and self.stamp[1] + len(data) > most:
            self._rotate()
        inode, size = self.stamp
        written = 0
        try:
            written = os.write(self.fd, data)
        finally:
            if written < len(data):
                os.ftruncate(self.fd, size)
        if written < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        self.stamp = (inode, size + written)

    def _rotate(self) -> None:
        self._path.rename(self._older)
        new = _opened(self._path)
        os.close(self.fd)
        self.fd = new
        lock(new, self._path)
        self.stamp = (os.fstat(new).st_ino, os.fstat(new).st_size)

    @property
    def _older(self) -> Path:
        return self._path.with_name(self._path.name + OLDER)

    def last_with(self, words: bytes) -> bytes:
        """The last line that contains these words, here or in the older file; or nothing."""
        line = _last_with(self.fd, self.stamp[1], words)
        if line:
            return line
        try:
            with open_regular(self._older) as file:
                return _last_with(file.fileno(), os.fstat(file.fileno()).st_size, words)
        except FileNotFoundError:
            return b""


def _last_with(fd: int, size: int, words: bytes) -> bytes:
    import mmap  # noqa: PLC0415  # only for a run that another process may have written about

    if not size:
        return b""
    with mmap.mmap(fd, size, access=mmap.ACCESS_READ) as data:
        at = data.rfind(words)
        if at < 0:
            return b""
        end = data.find(b"\n", at)
        return data[data.rfind(b"\n", 0, at) + 1 : end if end >= 0 else size]


def _opened(path: Path) -> int:
    try:
        return os.open(path, _ADD, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, _ADD, 0o600)
